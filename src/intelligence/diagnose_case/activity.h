// What the samples of a run tell about its end: since when it did nothing, and whether its memory
// grew.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "evidence/execution.h"
#include "store/series/series_store.h"

namespace expanse::intelligence::diagnose_case {

struct Activity {
  std::size_t series = 0;
  // From the last activity to the end: a minute in which the cores together used at least a
  // hundredth of a core and 2 % of what was asked for, or some GPU 2 %. Absent where the samples do
  // not reach to the last ten minutes (or fifth) of the run, or there was never any activity.
  std::optional<double> idle_tail_s;
  // Slope of memory over the second half of the run, by least squares; absent with fewer than ten
  // minutes of samples there, or where the line does not explain most of it (R² below 0.8).
  std::optional<double> memory_growth_bytes_per_hour;
};

// Blocks on the store: one look at what series there are, one read a metric of at most 2,000
// buckets a series. No samples are no error.
base::Result<Activity> ReadActivity(store::SeriesStore& series,
                                    const evidence::Execution& execution);

struct Point {
  double at_s = 0;
  double value = 0;
};
// Units a second; absent as above. Points in order of time.
std::optional<double> GrowthOf(const std::vector<Point>& points);

}  // namespace expanse::intelligence::diagnose_case
