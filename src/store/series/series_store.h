// Metric series: points in time order, appended as columns, read by window, aggregated exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace expanse::store {

// The identity of a series. `scope` is an execution id, or empty for the compute itself.
struct SeriesKey {
  std::string compute_id;
  std::string scope;
  std::string metric;
  std::string source;
  std::string node;
  std::optional<std::uint32_t> gpu_index;
  std::string gpu_uuid;
  bool operator==(const SeriesKey&) const = default;
};

// Points to add to one series. `times` ascend; NaN values are not points and are dropped.
struct SeriesAppend {
  SeriesKey key;
  std::string unit;
  std::string attribution;
  std::span<const base::WallTime> times;
  std::span<const double> values;
};

// What an append belongs to: records of (compute, stream) up to `sequence`. A store that has
// already taken a sequence of that stream takes it no second time.
struct AppendMark {
  std::string compute_id;
  std::string stream_id;
  std::uint64_t sequence = 0;
};

struct SeriesInfo {
  SeriesKey key;
  std::string unit;
  std::string attribution;
  std::uint64_t point_count = 0;
  base::WallTime first{};
  base::WallTime last{};
};

struct Bucket {
  base::WallTime start{};  // for raw points: the point's time
  double min = 0;
  double max = 0;
  double sum = 0;
  double last = 0;
  double p95 = 0;  // nearest rank: the ceil(0.95 n)-th smallest
  std::uint64_t count = 0;
  double avg() const { return sum / static_cast<double>(count); }
};

struct SeriesQuery {
  std::string compute_id;
  std::string scope;
  std::string metric;                      // empty: every metric
  std::string source;                      // empty: every source
  std::optional<std::uint32_t> gpu_index;  // absent: every GPU, and series off GPUs
  std::vector<std::string> nodes;          // series of other nodes are left out; empty: every node
  base::WallTime from{};                   // inclusive
  base::WallTime to{};                     // exclusive
  std::chrono::seconds interval{0};  // 0: raw points; buckets start at multiples of it since 1970
  std::size_t max_points = 5000;     // per series; the earliest are kept
};

// Whether a query for these nodes takes a series of this node ("": a series of no node).
inline bool OfNodes(const std::vector<std::string>& nodes, const std::string& node) {
  return nodes.empty() || node.empty() ||
         std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

struct SeriesResult {
  SeriesInfo info;              // counts and times of the whole series, not of the window
  std::vector<Bucket> buckets;  // ascending; empty buckets are left out
  bool truncated = false;
};

// Thread-safe. Every backend passes series_store_contract.h. Points with equal time in one series:
// the last one appended counts. Points may arrive out of order; reads are in order.
class SeriesStore {
 public:
  virtual ~SeriesStore() = default;

  // The highest sequence of the stream that was taken; 0 for a stream never seen. A batch that is
  // sent again with other bounds leaves out what is not above it.
  virtual base::Result<std::uint64_t> Watermark(std::string_view compute_id,
                                                std::string_view stream_id) = 0;
  // All or nothing, durable on return. False when `mark` (or a later sequence of its stream) was
  // taken before: nothing was changed. Fails with series.too_many when a compute would pass the
  // backend's bound on series per scope.
  virtual base::Result<bool> Append(const AppendMark& mark,
                                    std::span<const SeriesAppend> series) = 0;
  // Series of a scope, sorted by metric, node, gpu index. `source` empty: all.
  virtual base::Result<std::vector<SeriesInfo>> List(std::string_view compute_id,
                                                     std::string_view scope,
                                                     std::string_view source) = 0;
  virtual base::Result<std::vector<SeriesResult>> Query(const SeriesQuery& query) = 0;
  // Drops points older than `before`; a series without points is gone. Works in short steps so that
  // appends are never blocked for long, and ends early once `stop` is asked for. Returns how many
  // points went.
  virtual base::Result<std::uint64_t> DropBefore(base::WallTime before,
                                                 const std::stop_token& stop) = 0;
};

}  // namespace expanse::store
