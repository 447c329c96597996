// What is done for one `diagnose`: gather the evidence, run the engine.
#pragma once

#include <string>

#include "intelligence/diagnose_case/assemble.h"
#include "intelligence/diagnoser.h"
#include "intelligence/runbook_source.h"

namespace expanse::intelligence {

// Thread-safe. Holds references.
class DiagnoseWork final : public Diagnoser {
 public:
  DiagnoseWork(const diagnose_case::Stores& stores, RunbookSource& runbooks, store::RunStore& runs)
      : stores_(stores), runbooks_(runbooks), runs_(runs) {}

  base::Result<evidence::Execution> Find(const std::string& organisation_id,
                                         const ExecutionName& name) override;
  base::Result<DiagnoseOutcome> Do(const DiagnoseTask& task) override;

 private:
  // An earlier run of the user, else of the system, with this key whose answer can be read.
  base::Result<bool> FindCached(const DiagnoseTask& task, const std::string& key,
                                DiagnoseOutcome* outcome);

  const diagnose_case::Stores stores_;
  RunbookSource& runbooks_;
  store::RunStore& runs_;
};

}  // namespace expanse::intelligence
