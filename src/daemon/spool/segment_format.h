// The bytes of a segment of the samplers' spool, and its file name. docs/formats/spool-segment.md
// is the description; this is its only implementation. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace expanse::daemon::spool {

inline constexpr std::uint32_t kSegmentVersion = 1;
inline constexpr std::size_t kMaxSegmentFile = 32U << 20;
inline constexpr std::size_t kMaxRecord = 16U << 20;
inline constexpr std::size_t kMaxSegmentRecords = 64U << 20;  // bytes, unpacked
inline constexpr std::size_t kMaxSegmentRecordCount = 200'000;
inline constexpr std::size_t kMaxHostName = 253;

// What a file name says.
struct SegmentName {
  std::string stream_id;  // a UUID in its 36 characters
  std::uint64_t sequence = 0;
  bool events = false;  // holds more than samples
  bool operator==(const SegmentName&) const = default;
};
std::string FormatSegmentName(const SegmentName& name);
// Nothing unless it is exactly what FormatSegmentName gives.
std::optional<SegmentName> ParseSegmentName(std::string_view name);

// Letters, digits, '-', '_' and '.', not beginning with '.' or '-'.
bool IsHostName(std::string_view name);

struct ClockReading {
  base::WallTime wall{};
  base::MonoTime mono{};
  bool operator==(const ClockReading&) const = default;
};

struct SegmentHeader {
  std::string stream_id;
  std::uint64_t sequence = 0;
  ClockReading begun;
  std::string host;
};

enum class BlockKind : std::uint8_t { kSamples = 1, kEvents = 2, kStatus = 3 };

// Writes a segment piece by piece. A copy goes on from where the original was: for a write that
// failed and is tried again.
class SegmentEncoder {
 public:
  // The bytes to begin the file with.
  static std::string Begin(const SegmentHeader& header, SegmentEncoder* encoder);
  // Appends a block of `records` (at least one, each of 1 to kMaxRecord bytes).
  void AppendBlock(BlockKind kind, const std::vector<std::string>& records, std::string* out);
  void AppendTrailer(const ClockReading& handed_over, std::string* out) const;
  std::uint32_t records() const { return records_; }

 private:
  friend base::Result<struct SegmentPrefix> ReadPrefix(std::string_view bytes);
  std::uint32_t chain_ = 0;  // the last checksum written
  std::uint32_t blocks_ = 0;
  std::uint32_t records_ = 0;
};

// As far as a file without its trailer goes: what a writer that died had written.
struct SegmentPrefix {
  SegmentHeader header;
  SegmentEncoder encoder;     // to go on after `size`
  std::size_t size = 0;       // of the header and all whole blocks
  bool events = false;        // a block holds more than samples
  std::uint32_t records = 0;  // status not counted
};
// Fails with spool.version, spool.corrupt or spool.torn (not even the header is there).
base::Result<SegmentPrefix> ReadPrefix(std::string_view bytes);

struct Segment {
  SegmentHeader header;
  ClockReading handed_over;
  std::vector<std::string> samples;  // serialized EvidenceRecords, in order
  std::vector<std::string> events;
  std::string status;  // of the last status block; empty: there was none
};
// Fails with spool.version, spool.torn (the end is missing), spool.corrupt (a checksum or a length
// does not hold) or spool.too_large (a bound does not).
base::Result<Segment> DecodeSegment(std::string_view bytes);

}  // namespace expanse::daemon::spool
