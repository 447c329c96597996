// Whole records as bytes in a column: the protobuf messages of the API, which carry every field
// byte-exactly and which later versions of the program can read. Internal to store/records.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "evidence/cluster_state.h"
#include "evidence/execution.h"
#include "evidence/records.h"

namespace expanse::store::records {

// Equal records give equal bytes.
std::string EncodeDetail(const evidence::Execution& execution);
std::string EncodeDetail(const evidence::HealthReport& report);
// Compressed: a large cluster has megabytes of nodes that are much alike.
std::string EncodeDetail(const evidence::ClusterState& state);
// Fail with store.corrupt. The limits on what producers send do not apply: they were checked when
// the records came in, and merging may go beyond them.
base::Result<evidence::Execution> DecodeExecution(std::string_view detail);
base::Result<evidence::HealthReport> DecodeHealth(std::string_view detail);
base::Result<evidence::ClusterState> DecodeClusterState(std::string_view detail);

}  // namespace expanse::store::records
