// The engine behind the method Analyse, as the plane sees it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "intelligence/analyse/question.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence {

struct AnalyseTask {
  analyse::Question question;
  std::string organisation_id;
  std::string user_id;
  std::string compute_id;         // empty: all
  bool reads_executions = false;  // of the organisation; without, no run tells about the question
  bool use_cache = true;
};

struct AnalyseOutcome {
  std::optional<store::RunRow> cached;  // then nothing else is set
  std::string cache_key;
  std::string job_name;
  std::string answer;  // a serialised v1::AnalyseResult
  std::vector<store::RunArtifactRow> artifacts;
};

// Thread-safe.
class Analyser {
 public:
  virtual ~Analyser() = default;
  // What the target's job will be called. Fails with invalid_argument where it cannot be read.
  virtual base::Result<std::string> JobName(const analyse::Question& question) = 0;
  // The answer; stores nothing. Fails as JobName does, or with what history and store fail with.
  virtual base::Result<AnalyseOutcome> Do(const AnalyseTask& task) = 0;
};

}  // namespace expanse::intelligence
