// From the bytes of a segment to records that may be believed: decoded within limits, of jobs by
// node-local names only, times put right. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "daemon/spool/segment_format.h"
#include "evidence/records.h"

namespace expanse::daemon::spool {

// "job:41982" or "sluid:s" and 13 characters of Crockford's base 32, of Slurm: what a sampler may
// call a job.
bool IsLocalKey(const evidence::ExecutionKey& key);
// The job that a record is about; null: the host itself.
const evidence::ExecutionKey* KeyOf(const evidence::Payload& payload);
evidence::ExecutionKey* KeyOf(evidence::Payload& payload);

struct HostEvidence {
  std::vector<evidence::Record> records;  // events first, each kind in the order of the segment
  std::optional<evidence::HealthReport> status;
};

// Fails with spool.forged (another host's, a key that is not node-local, an event of no job) or
// with what evidence::Decode says. Times may lie ahead: the host's clock may be wrong.
base::Result<HostEvidence> TakeEvidence(Segment segment, std::string_view host);

// Every node that a record names: of its series, or of its execution.
std::vector<std::string_view> NodesOf(const evidence::Payload& payload);

// Takes `skew` (how far the host's clock is ahead) from the times that the host's clock gave: when
// the record was made, and when it was sampled. What an execution says of its own times is the
// scheduler's and stays.
void CorrectTimes(std::chrono::microseconds skew, evidence::Record* record);

}  // namespace expanse::daemon::spool
