// What the controller remembers of the spool: per host how far it came and how the clock is
// corrected. <state_dir>/spool.state; see "Once" in docs/formats/spool-segment.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/spool/segment_format.h"

namespace expanse::daemon::spool {

struct StreamMark {
  std::string stream_id;
  std::uint64_t taken = 0;  // every segment up to this sequence
  bool operator==(const StreamMark&) const = default;
};

struct HostState {
  static constexpr std::size_t kStreams = 8;
  std::vector<StreamMark> streams;  // the last kStreams, in the order in which they were first seen
  std::chrono::microseconds correction{};
  // Segments before this one, and of streams seen before its own, are corrected by `previous`: also
  // when they come again.
  std::chrono::microseconds previous{};
  StreamMark corrected_from;  // empty: from the beginning
  bool operator==(const HostState&) const = default;

  // A segment of the stream came. To be told before anything else of it.
  void Saw(const std::string& stream_id);
  bool WasTaken(const SegmentName& name) const;
  // Everything of the stream up to `name` was taken.
  void MarkTaken(const SegmentName& name);
  // `correction` counts from `from` on.
  void Correct(std::chrono::microseconds correction, const SegmentName& from);
  std::chrono::microseconds CorrectionOf(const SegmentName& name) const;
};

using DrainState = std::map<std::string, HostState, std::less<>>;

std::string EncodeDrainState(const DrainState& state);
// Fails with spool.state_version or spool.state_corrupt.
base::Result<DrainState> DecodeDrainState(std::string_view bytes);

}  // namespace expanse::daemon::spool
