// A chunk: consecutive points of one series as bytes. The format is docs/formats/series-chunk.md.
// Pure functions; no state, no I/O.
//
// A chunk grows by appending segments, each complete in itself, so that adding points to a series
// costs no decoding of what is there; a full chunk is packed into one segment, which is smaller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::store::series {

// Columns of equal length; times are microseconds since 1970 and strictly ascend.
struct Points {
  std::vector<std::int64_t> times;
  std::vector<double> values;

  std::size_t size() const { return times.size(); }
  bool empty() const { return times.empty(); }
  // Points [from, to).
  Points Slice(std::size_t from, std::size_t to) const;
  bool operator==(const Points&) const = default;
};

inline constexpr std::size_t kMaxChunkPoints = 1U << 16;

// The bytes a chunk starts with; a chunk without segments is valid and empty.
std::string EmptyChunk();
// One segment, to be put behind a chunk. `points` is not empty, not longer than kMaxChunkPoints and
// later than all that is in the chunk. `pack`: spend time to make it small.
std::string EncodeSegment(const Points& points, bool pack);
// How many segments a chunk has, by their lengths alone; 0 for a damaged one.
std::size_t CountSegments(std::string_view chunk);
// A chunk of one packed segment.
std::string PackChunk(const Points& points);
// Fails with series.corrupt on any damage, and on a version that this program does not know.
base::Result<Points> DecodeChunk(std::string_view chunk);

// The points of one segment's body, without its checksum. For the fuzzer.
base::Result<Points> DecodeSegmentBody(std::string_view body);

// Both together in order of time; where both have a point at one time, `newer` counts.
Points MergePoints(const Points& older, const Points& newer);

}  // namespace expanse::store::series
