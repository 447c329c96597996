// What is done for one `diagnose`: gather the evidence, run the engine.
#pragma once

#include <memory>
#include <string>

#include "intelligence/diagnose/runbook_set.h"
#include "intelligence/diagnose_case/assemble.h"
#include "intelligence/diagnoser.h"

namespace expanse::intelligence {

// The runbooks in force and the version that their answers are cached under.
struct Runbooks {
  std::shared_ptr<const diagnose::RunbookSet> set;
  std::string version;
};

// Where the runbooks of the moment are had from. Thread-safe.
class RunbookSource {
 public:
  virtual ~RunbookSource() = default;
  virtual Runbooks Current() = 0;
};

// Those that are part of the program.
class EmbeddedRunbooks final : public RunbookSource {
 public:
  // Fails as RunbookSet::Create.
  static base::Result<std::unique_ptr<EmbeddedRunbooks>> Create();
  Runbooks Current() override { return {set_, "embedded"}; }

 private:
  explicit EmbeddedRunbooks(std::shared_ptr<const diagnose::RunbookSet> set)
      : set_(std::move(set)) {}
  std::shared_ptr<const diagnose::RunbookSet> set_;
};

// Thread-safe. Holds references.
class DiagnoseWork final : public Diagnoser {
 public:
  DiagnoseWork(const diagnose_case::Stores& stores, RunbookSource& runbooks, store::RunStore& runs)
      : stores_(stores), runbooks_(runbooks), runs_(runs) {}

  base::Result<evidence::Execution> Find(const std::string& organisation_id,
                                         const ExecutionName& name) override;
  base::Result<DiagnoseOutcome> Do(const DiagnoseTask& task) override;

 private:
  const diagnose_case::Stores stores_;
  RunbookSource& runbooks_;
  store::RunStore& runs_;
};

}  // namespace expanse::intelligence
