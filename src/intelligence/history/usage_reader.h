// What the samples of a run tell that its record does not: peaks of its devices and cores. Internal
// to history.
#pragma once

#include "base/result.h"
#include "evidence/execution.h"
#include "intelligence/predict/run.h"
#include "store/series/series_store.h"

namespace expanse::intelligence::history {

// Adds GPU memory peak and size (of the device that needed most), utilisation (mean over devices of
// which no other run had a part), devices that did anything, the highest minute of CPU (nodes added
// up), and a floor for memory where the record has no peak. One look at what series there are, then
// one aggregate read a metric, of at most kMostBuckets a series and about kMostBucketsInAll
// together (then in longer buckets than a minute). Blocks on the store; its errors.
base::Status AddSampledUsage(store::SeriesStore& series, const evidence::Execution& execution,
                             predict::Run* run);

inline constexpr std::size_t kMostBuckets = 1000;
inline constexpr std::size_t kMostBucketsInAll = 200'000;

}  // namespace expanse::intelligence::history
