// Records as samplers send them, for tests of both ends of the spool.
#pragma once

#include <cstddef>
#include <string>

#include "base/time.h"
#include "evidence/records.h"

namespace expanse::daemon::spool {

// Job `id` was seen to run.
evidence::Payload EventOfJob(const std::string& id);
// `points` of one series of job `id`, a second apart.
evidence::SampleBatch SamplesOfJob(const std::string& id, std::size_t points, base::WallTime from);
// The same, of values that do not compress.
evidence::SampleBatch NoiseOfJob(const std::string& id, std::size_t points, base::WallTime from);

}  // namespace expanse::daemon::spool
