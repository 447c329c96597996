// Reads of executions, log tails, sources and health. Everything is of the caller's organisation;
// what is of another one is not found.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "data/options.h"
#include "net/caller.h"
#include "store/blobs/blob_store.h"
#include "store/records/evidence_store.h"

namespace expanse::data::v1 {
class GetClusterStateRequest;
class GetClusterStateResponse;
class GetComputeHealthRequest;
class GetComputeHealthResponse;
class GetExecutionRequest;
class GetExecutionResponse;
class GetLogTailRequest;
class GetLogTailResponse;
class GetSourceBundleRequest;
class GetSourceBundleResponse;
class ListExecutionsRequest;
class ListExecutionsResponse;
}  // namespace expanse::data::v1

namespace expanse::data {

// The execution, if it is of the caller's organisation. Fails with execution.id (not a UUID) or
// execution.not_found.
base::Result<evidence::Execution> FindExecution(store::EvidenceStore& records,
                                                const net::CallContext& context,
                                                std::string_view execution_id);

// Whether the caller may see whose jobs there are and what they are called: the permission that
// ListExecutions asks for. For methods that are open to others too.
bool MayReadExecutions(const net::CallContext& context);

// Thread-safe. Fail with invalid_argument for what is wrong with the request, not_found, or what
// the stores fail with.
class Queries {
 public:
  Queries(const DataOptions& options, store::EvidenceStore& records, store::BlobStore& blobs)
      : options_(options), records_(records), blobs_(blobs) {}

  base::Result<v1::ListExecutionsResponse> ListExecutions(const net::CallContext& context,
                                                          const v1::ListExecutionsRequest& request);
  base::Result<v1::GetExecutionResponse> GetExecution(const net::CallContext& context,
                                                      const v1::GetExecutionRequest& request);
  // No streams where nothing was captured.
  base::Result<v1::GetLogTailResponse> GetLogTail(const net::CallContext& context,
                                                  const v1::GetLogTailRequest& request);
  // An empty bundle_hash where no sources were captured.
  base::Result<v1::GetSourceBundleResponse> GetSourceBundle(
      const net::CallContext& context, const v1::GetSourceBundleRequest& request);
  base::Result<v1::GetComputeHealthResponse> GetComputeHealth(
      const net::CallContext& context, const v1::GetComputeHealthRequest& request);
  // No state where none was reported. Pending jobs only for those who may read executions.
  base::Result<v1::GetClusterStateResponse> GetClusterState(
      const net::CallContext& context, const v1::GetClusterStateRequest& request);

 private:
  base::Result<std::string> Blob(const std::string& name, std::string_view what);

  const DataOptions options_;
  store::EvidenceStore& records_;
  store::BlobStore& blobs_;
};

}  // namespace expanse::data
