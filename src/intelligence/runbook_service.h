// The methods that show the runbooks in force: ListRunbooks, GetRunbook.
#pragma once

#include "base/result.h"
#include "intelligence/runbook_source.h"
#include "net/caller.h"

namespace expanse::intelligence::v1 {
class GetRunbookRequest;
class GetRunbookResponse;
class ListRunbooksRequest;
class ListRunbooksResponse;
}  // namespace expanse::intelligence::v1

namespace expanse::intelligence {

// Thread-safe. Holds a reference.
class RunbookService {
 public:
  explicit RunbookService(RunbookSource& source) : source_(source) {}

  // By id.
  base::Result<v1::ListRunbooksResponse> ListRunbooks(const net::CallContext& context,
                                                      const v1::ListRunbooksRequest& request);
  // Fails with runbook.id (no id, or far too long) or runbook.not_found.
  base::Result<v1::GetRunbookResponse> GetRunbook(const net::CallContext& context,
                                                  const v1::GetRunbookRequest& request);

 private:
  RunbookSource& source_;
};

}  // namespace expanse::intelligence
