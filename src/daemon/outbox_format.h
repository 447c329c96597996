// The bytes of an outbox on disk: segment files and the state file. docs/formats/outbox.md is the
// description; this is its only implementation. Pure functions and a reader without state outside
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace expanse::daemon {

// What a stream carries, and so what may happen to it when space runs out.
enum class StreamClass : std::uint8_t { kLifecycle = 1, kSamples = 2 };
std::string_view Name(StreamClass stream_class);  // "lifecycle", "samples"

inline constexpr std::uint32_t kOutboxVersion = 1;
inline constexpr std::size_t kSegmentHeaderSize = 48;
inline constexpr std::size_t kFrameHeaderSize = 24;
// Above the largest record that evidence::WireLimits lets through.
inline constexpr std::size_t kMaxFramePayload = 16U << 20;

struct SegmentHeader {
  StreamClass stream_class = StreamClass::kLifecycle;
  std::string stream_id;  // a UUID in its 36 characters
  base::WallTime created_at{};
};

std::string EncodeSegmentHeader(const SegmentHeader& header);
// Fails with outbox.version for a version that this program does not know, outbox.corrupt
// otherwise.
base::Result<SegmentHeader> DecodeSegmentHeader(std::string_view bytes);

// Checksums of frames start from the stream's id: bytes that a user put into a record cannot pass
// for a frame when a damaged segment is searched for the next good one.
std::uint32_t FrameSeed(std::string_view stream_id);
// Appends one frame to `out`. `payload` is at most kMaxFramePayload.
void AppendFrame(std::uint32_t seed, std::uint64_t sequence, std::string_view payload,
                 std::string* out);

struct Frame {
  std::uint64_t sequence = 0;
  std::string payload;
  std::uint64_t end = 0;  // offset of the byte after the frame
};

// Reads the good frames of a segment in order and steps over what is damaged. Holds one buffer of
// at most the largest frame. Not thread-safe.
class FrameReader {
 public:
  // Fills `out` with up to `size` bytes at `offset`; fewer only at the end of the file.
  using ReadAt =
      std::function<base::Status(std::uint64_t offset, std::size_t size, std::string* out)>;

  // Reads [begin, end). `begin` is the start of a frame.
  FrameReader(ReadAt read, std::uint32_t seed, std::uint64_t begin, std::uint64_t end);

  // The next good frame with a sequence above the one before, nothing at the end. Fails when
  // reading fails.
  base::Result<std::optional<Frame>> Next();

  // Damaged stretches passed so far, and whether the last one reached the end of the segment.
  std::uint64_t damaged() const { return damaged_; }
  bool torn_tail() const { return torn_tail_; }
  // Offset after the last good frame (or `begin`).
  std::uint64_t good_end() const { return good_end_; }

 private:
  base::Status Fill(std::size_t size);
  std::string_view Peek(std::size_t size) const;
  base::Result<bool> FindNextHeader();

  ReadAt read_;
  std::uint32_t seed_;
  std::uint64_t position_;
  std::uint64_t end_;
  std::string buffer_;  // bytes from buffer_offset_ on
  std::uint64_t buffer_offset_;
  std::uint64_t good_end_;
  std::uint64_t last_sequence_ = 0;
  std::uint64_t damaged_ = 0;
  bool in_damage_ = false;
  bool torn_tail_ = false;
};

// What must survive besides the segments.
struct OutboxState {
  StreamClass stream_class = StreamClass::kLifecycle;
  std::string stream_id;
  std::uint64_t reserved = 0;  // every sequence handed out so far is at or below it
  std::uint64_t acknowledged = 0;
  std::uint64_t dropped = 0;  // records, since the outbox was made
  std::uint64_t damaged = 0;  // stretches
  std::uint64_t refused = 0;  // records that the data plane refused for good
};

std::string EncodeOutboxState(const OutboxState& state);
// Fails like DecodeSegmentHeader.
base::Result<OutboxState> DecodeOutboxState(std::string_view bytes);

}  // namespace expanse::daemon
