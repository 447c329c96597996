#include "intelligence/runbook_source.h"

namespace expanse::intelligence {

base::Result<std::unique_ptr<EmbeddedRunbooks>> EmbeddedRunbooks::Create() {
  EXPANSE_ASSIGN_OR_RETURN(auto set,
                           diagnose::RunbookSet::Create(diagnose::RunbookSet::Embedded(),
                                                        diagnose::RunbookSet::EmbeddedDecoys()));
  return std::unique_ptr<EmbeddedRunbooks>(new EmbeddedRunbooks(std::move(set)));
}

}  // namespace expanse::intelligence
