// The engine behind the method Diagnose, as the plane sees it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/execution.h"
#include "intelligence/diagnose/case.h"
#include "intelligence/predict/run.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence {

// Which execution is meant: its id, or the newest with a native id.
struct ExecutionName {
  std::string execution_id;
  std::string native_id;
  evidence::SourceType source_type = evidence::SourceType::kUnspecified;  // any
  std::string compute_id;                                                 // empty: any
};

struct DiagnoseTask {
  evidence::Execution execution;
  std::string organisation_id;
  std::string user_id;
  std::vector<diagnose::SourceText> extra_sources;
  bool use_cache = true;
};

struct DiagnoseOutcome {
  std::optional<store::RunRow> cached;  // then cache_key and answer are empty
  std::string cache_key;
  std::string answer;         // a serialised v1::DiagnoseResult
  std::string failure_class;  // empty: nothing failed
  std::string title;
  predict::Confidence confidence = predict::Confidence::kLow;
};

// Thread-safe.
class Diagnoser {
 public:
  virtual ~Diagnoser() = default;
  // Fails with execution.not_found; also for one of another organisation.
  virtual base::Result<evidence::Execution> Find(const std::string& organisation_id,
                                                 const ExecutionName& name) = 0;
  // The answer; stores nothing. Fails with what the stores fail with.
  virtual base::Result<DiagnoseOutcome> Do(const DiagnoseTask& task) = 0;
};

}  // namespace expanse::intelligence
