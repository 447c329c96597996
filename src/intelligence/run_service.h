// The methods that show runs and artefacts again: GetRun, ListRuns, GetArtifact. Everything is of
// the caller, or with executions.read_all of their organisation; what is not is not found.
// Diagnoses that nobody asked for are shown to whoever may read executions.
#pragma once

#include "base/result.h"
#include "net/caller.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence::v1 {
class GetArtifactRequest;
class GetArtifactResponse;
class GetRunRequest;
class GetRunResponse;
class ListRunsRequest;
class ListRunsResponse;
}  // namespace expanse::intelligence::v1

namespace expanse::intelligence {

// Thread-safe.
class RunService {
 public:
  explicit RunService(store::RunStore& runs) : runs_(runs) {}

  // Fails with run.id (not a UUID) or run.not_found.
  base::Result<v1::GetRunResponse> GetRun(const net::CallContext& context,
                                          const v1::GetRunRequest& request);
  // Fails with run.all_users (permission_denied), page_size.range, page_token.* or filter.*.
  base::Result<v1::ListRunsResponse> ListRuns(const net::CallContext& context,
                                              const v1::ListRunsRequest& request);
  // Fails with artifact.id or artifact.not_found.
  base::Result<v1::GetArtifactResponse> GetArtifact(const net::CallContext& context,
                                                    const v1::GetArtifactRequest& request);

 private:
  store::RunStore& runs_;
};

}  // namespace expanse::intelligence
