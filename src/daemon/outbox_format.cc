#include "daemon/outbox_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/crypto.h"
#include "daemon/binary.h"

namespace expanse::daemon {
namespace {

constexpr std::string_view kSegmentMagic = "XPNSOBX\n";
constexpr std::string_view kStateMagic = "XPNSOBS\n";
constexpr std::string_view kFrameMarker = "\xf5XF1";
constexpr std::size_t kStateSize = 84;
constexpr std::size_t kReadAhead = 256U << 10;

base::Error Corrupt(std::string_view what) {
  return base::Error{base::Code::kDataLoss, "outbox.corrupt", std::string(what)};
}

// Magic, version and class: the same 16 bytes begin both kinds of file.
base::Result<StreamClass> CheckPreamble(std::string_view bytes, std::string_view magic) {
  if (bytes.size() < 16 || !bytes.starts_with(magic)) {
    return std::unexpected(Corrupt("not an outbox file"));
  }
  if (const auto version = Get<std::uint32_t>(bytes, 8); version != kOutboxVersion) {
    return base::Fail(
        base::Code::kFailedPrecondition, "outbox.version",
        fmt::format("format version {} is not known here (this program writes version "
                    "{}); start the newer expanse-daemon that wrote it",
                    version, kOutboxVersion));
  }
  const auto stream_class = Get<std::uint32_t>(bytes, 12);
  if (stream_class != 1 && stream_class != 2)
    return std::unexpected(Corrupt("unknown stream class"));
  return static_cast<StreamClass>(stream_class);
}

bool ChecksumHolds(std::string_view bytes, std::size_t size) {
  return bytes.size() >= size &&
         Get<std::uint32_t>(bytes, size - 4) == base::Crc32c(bytes.substr(0, size - 4));
}

bool HeaderHolds(std::string_view bytes, std::uint32_t seed) {
  return bytes.size() >= kFrameHeaderSize && bytes.starts_with(kFrameMarker) &&
         Get<std::uint32_t>(bytes, 4) <= kMaxFramePayload &&
         Get<std::uint32_t>(bytes, 20) == base::Crc32c(bytes.substr(0, 20), seed);
}

}  // namespace

std::string_view Name(StreamClass stream_class) {
  switch (stream_class) {
    case StreamClass::kLifecycle:
      return "lifecycle";
    case StreamClass::kSamples:
      return "samples";
  }
  return "";
}

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  std::string out(kSegmentMagic);
  Put<std::uint32_t>(&out, kOutboxVersion);
  Put<std::uint32_t>(&out, static_cast<std::uint32_t>(header.stream_class));
  out += UuidBytes(header.stream_id);
  Put<std::int64_t>(&out, base::ToMicros(header.created_at));
  Put<std::uint32_t>(&out, 0);
  Put<std::uint32_t>(&out, base::Crc32c(out));
  return out;
}

base::Result<SegmentHeader> DecodeSegmentHeader(std::string_view bytes) {
  EXPANSE_ASSIGN_OR_RETURN(const StreamClass stream_class, CheckPreamble(bytes, kSegmentMagic));
  if (!ChecksumHolds(bytes, kSegmentHeaderSize)) {
    return std::unexpected(Corrupt("the segment's header fails its checksum"));
  }
  return SegmentHeader{.stream_class = stream_class,
                       .stream_id = UuidText(bytes.substr(16, 16)),
                       .created_at = base::FromMicros(Get<std::int64_t>(bytes, 32))};
}

std::uint32_t FrameSeed(std::string_view stream_id) { return base::Crc32c(UuidBytes(stream_id)); }

void AppendFrame(std::uint32_t seed, std::uint64_t sequence, std::string_view payload,
                 std::string* out) {
  EXPANSE_CHECK(payload.size() <= kMaxFramePayload);
  std::string header(kFrameMarker);
  Put<std::uint32_t>(&header, static_cast<std::uint32_t>(payload.size()));
  Put<std::uint64_t>(&header, sequence);
  Put<std::uint32_t>(&header, base::Crc32c(payload, seed));
  Put<std::uint32_t>(&header, base::Crc32c(header, seed));
  out->append(header);
  out->append(payload);
}

FrameReader::FrameReader(ReadAt read, std::uint32_t seed, std::uint64_t begin, std::uint64_t end)
    : read_(std::move(read)),
      seed_(seed),
      position_(begin),
      end_(end),
      buffer_offset_(begin),
      good_end_(begin) {}

// Makes the buffer hold `size` bytes from position_ on, or all up to end_.
base::Status FrameReader::Fill(std::size_t size) {
  const std::uint64_t wanted = std::min<std::uint64_t>(end_, position_ + size);
  if (wanted <= buffer_offset_ + buffer_.size()) return {};
  buffer_.erase(0, std::min<std::uint64_t>(buffer_.size(), position_ - buffer_offset_));
  buffer_offset_ = position_;
  const std::uint64_t from = buffer_offset_ + buffer_.size();
  const std::uint64_t to = std::min<std::uint64_t>(end_, std::max(wanted, from + kReadAhead));
  std::string more;
  EXPANSE_RETURN_IF_ERROR(read_(from, static_cast<std::size_t>(to - from), &more));
  if (more.size() < to - from) end_ = from + more.size();  // the file is shorter than was said
  buffer_ += more;
  return {};
}

std::string_view FrameReader::Peek(std::size_t size) const {
  return std::string_view(buffer_).substr(
      std::min<std::size_t>(buffer_.size(), static_cast<std::size_t>(position_ - buffer_offset_)),
      size);
}

// Moves position_ to the next header that holds. False: there is none up to the end.
base::Result<bool> FrameReader::FindNextHeader() {
  while (position_ + kFrameHeaderSize <= end_) {
    EXPANSE_RETURN_IF_ERROR(Fill(kReadAhead / 2));
    const std::string_view window = Peek(kReadAhead);
    const std::size_t found = window.find(kFrameMarker);
    if (found == std::string_view::npos) {
      // The marker may begin in the last three bytes of the window.
      position_ += window.size() > 3 ? window.size() - 3 : kFrameHeaderSize;
      continue;
    }
    position_ += found;
    EXPANSE_RETURN_IF_ERROR(Fill(kFrameHeaderSize));
    if (HeaderHolds(Peek(kFrameHeaderSize), seed_)) return true;
    ++position_;
  }
  position_ = end_;
  return false;
}

base::Result<std::optional<Frame>> FrameReader::Next() {
  while (position_ < end_) {
    EXPANSE_RETURN_IF_ERROR(Fill(kFrameHeaderSize));
    if (position_ >= end_) break;
    const std::string_view header = Peek(kFrameHeaderSize);
    bool damaged = !HeaderHolds(header, seed_);
    if (!damaged) {
      const std::size_t size = Get<std::uint32_t>(header, 4);
      const auto sequence = Get<std::uint64_t>(header, 8);
      const auto checksum = Get<std::uint32_t>(header, 16);
      EXPANSE_RETURN_IF_ERROR(Fill(kFrameHeaderSize + size));
      const std::string_view whole = Peek(kFrameHeaderSize + size);
      if (whole.size() == kFrameHeaderSize + size) {
        const std::string_view payload = whole.substr(kFrameHeaderSize);
        if (sequence > last_sequence_ && base::Crc32c(payload, seed_) == checksum) {
          Frame frame{sequence, std::string(payload), position_ + whole.size()};
          position_ = good_end_ = frame.end;
          last_sequence_ = sequence;
          in_damage_ = false;
          return frame;
        }
        // The header is good: its length leads to the next frame.
        if (!in_damage_) ++damaged_;
        in_damage_ = true;
        position_ += whole.size();
        continue;
      }
      damaged = true;
    }
    if (!in_damage_) ++damaged_;
    in_damage_ = true;
    ++position_;
    EXPANSE_RETURN_IF_ERROR(FindNextHeader());
  }
  torn_tail_ = in_damage_;
  return std::nullopt;
}

std::string EncodeOutboxState(const OutboxState& state) {
  std::string out(kStateMagic);
  Put<std::uint32_t>(&out, kOutboxVersion);
  Put<std::uint32_t>(&out, static_cast<std::uint32_t>(state.stream_class));
  out += UuidBytes(state.stream_id);
  for (std::uint64_t number :
       {state.reserved, state.acknowledged, state.dropped, state.damaged, state.refused}) {
    Put<std::uint64_t>(&out, number);
  }
  Put<std::uint64_t>(&out, 0);
  Put<std::uint32_t>(&out, base::Crc32c(out));
  return out;
}

base::Result<OutboxState> DecodeOutboxState(std::string_view bytes) {
  EXPANSE_ASSIGN_OR_RETURN(const StreamClass stream_class, CheckPreamble(bytes, kStateMagic));
  if (!ChecksumHolds(bytes, kStateSize)) {
    return std::unexpected(Corrupt("the state file fails its checksum"));
  }
  return OutboxState{.stream_class = stream_class,
                     .stream_id = UuidText(bytes.substr(16, 16)),
                     .reserved = Get<std::uint64_t>(bytes, 32),
                     .acknowledged = Get<std::uint64_t>(bytes, 40),
                     .dropped = Get<std::uint64_t>(bytes, 48),
                     .damaged = Get<std::uint64_t>(bytes, 56),
                     .refused = Get<std::uint64_t>(bytes, 64)};
}

}  // namespace expanse::daemon
