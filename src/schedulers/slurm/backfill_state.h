// How far the history of a cluster was imported: the spans of time of which every run that ended in
// them was taken. Kept in a file, so that an import that was interrupted goes on where it was.
// Format: JSON, {"version":1,"cluster":"aurora","done":[[1788220800,1788307200],…]}: epoch seconds,
// each span from its first second up to, without, its last.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace expanse::schedulers::slurm {

// [from, to)
struct TimeSpan {
  base::WallTime from{};
  base::WallTime to{};
  bool operator==(const TimeSpan&) const = default;
};

// A set of moments as spans, sorted and apart. Plain value.
class CoveredTime {
 public:
  void Add(TimeSpan span);
  // What of `span` is not in it, in order.
  std::vector<TimeSpan> GapsIn(TimeSpan span) const;
  const std::vector<TimeSpan>& spans() const { return spans_; }

 private:
  std::vector<TimeSpan> spans_;
};

// Nothing covered where there is no file, and where it is damaged or of another cluster: importing
// twice does no harm. Fails with os.* when the file cannot be read.
base::Result<CoveredTime> LoadCoveredTime(const std::string& path, std::string_view cluster);
// In one step; a crash leaves the old file or the new one.
base::Status SaveCoveredTime(const std::string& path, std::string_view cluster,
                             const CoveredTime& covered);

}  // namespace expanse::schedulers::slurm
