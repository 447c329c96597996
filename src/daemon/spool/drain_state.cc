#include "daemon/spool/drain_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/crypto.h"
#include "daemon/binary.h"

namespace expanse::daemon::spool {
namespace {

constexpr std::string_view kMagic = "XPNSSPS\n";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMaxHosts = 100'000;

void PutText(std::string* out, std::string_view text) {
  Put<std::uint16_t>(out, static_cast<std::uint16_t>(text.size()));
  out->append(text);
}

// Reads from the front of the bytes; once they are too few everything reads as zero.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T Take() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
    } else {
      std::memcpy(&value, rest_.data(), sizeof(T));
      rest_.remove_prefix(sizeof(T));
    }
    return value;
  }
  std::string TakeText() {
    const std::size_t size = Take<std::uint16_t>();
    if (rest_.size() < size) ok_ = false;
    if (!ok_) return "";
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  StreamMark TakeMark() {
    std::string stream = TakeText();
    return {.stream_id = std::move(stream), .taken = Take<std::uint64_t>()};
  }
  std::chrono::microseconds TakeSkew() { return std::chrono::microseconds(Take<std::int64_t>()); }
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::unexpected<base::Error> Corrupt() {
  return base::Fail(base::Code::kDataLoss, "spool.state_corrupt", "the state file is damaged");
}

HostState TakeHost(Reader* reader) {
  HostState host;
  host.correction = reader->TakeSkew();
  host.previous = reader->TakeSkew();
  host.corrected_from = reader->TakeMark();
  const std::size_t streams = reader->Take<std::uint8_t>();
  for (std::size_t i = 0; i < streams && reader->ok(); ++i)
    host.streams.push_back(reader->TakeMark());
  return host;
}

}  // namespace

bool HostState::WasTaken(const SegmentName& name) const {
  const auto mark = std::ranges::find(streams, name.stream_id, &StreamMark::stream_id);
  return mark != streams.end() && name.sequence <= mark->taken;
}

void HostState::Saw(const std::string& stream_id) {
  if (std::ranges::find(streams, stream_id, &StreamMark::stream_id) != streams.end()) return;
  if (streams.size() == kStreams) streams.erase(streams.begin());
  streams.push_back({.stream_id = stream_id, .taken = 0});
}

void HostState::MarkTaken(const SegmentName& name) {
  Saw(name.stream_id);
  StreamMark& mark = *std::ranges::find(streams, name.stream_id, &StreamMark::stream_id);
  mark.taken = std::max(mark.taken, name.sequence);
}

void HostState::Correct(std::chrono::microseconds by, const SegmentName& from) {
  Saw(from.stream_id);
  previous = correction;
  correction = by;
  corrected_from = {.stream_id = from.stream_id, .taken = from.sequence};
}

std::chrono::microseconds HostState::CorrectionOf(const SegmentName& name) const {
  if (name.stream_id == corrected_from.stream_id)
    return name.sequence < corrected_from.taken ? previous : correction;
  // By when they were seen: a stream's id is made from its host's clock, which may have been wrong.
  const auto mark = std::ranges::find(streams, name.stream_id, &StreamMark::stream_id);
  const auto from = std::ranges::find(streams, corrected_from.stream_id, &StreamMark::stream_id);
  return mark < from && from != streams.end() ? previous : correction;
}

std::string EncodeDrainState(const DrainState& state) {
  std::string out(kMagic);
  Put<std::uint32_t>(&out, kVersion);
  Put<std::uint32_t>(&out, static_cast<std::uint32_t>(state.size()));
  for (const auto& [name, host] : state) {
    PutText(&out, name);
    Put<std::int64_t>(&out, host.correction.count());
    Put<std::int64_t>(&out, host.previous.count());
    PutText(&out, host.corrected_from.stream_id);
    Put<std::uint64_t>(&out, host.corrected_from.taken);
    Put<std::uint8_t>(&out, static_cast<std::uint8_t>(host.streams.size()));
    for (const StreamMark& mark : host.streams) {
      PutText(&out, mark.stream_id);
      Put<std::uint64_t>(&out, mark.taken);
    }
  }
  Put<std::uint32_t>(&out, base::Crc32c(out));
  return out;
}

base::Result<DrainState> DecodeDrainState(std::string_view bytes) {
  if (bytes.size() < kMagic.size() + 12 || !bytes.starts_with(kMagic)) return Corrupt();
  const std::string_view body = bytes.substr(0, bytes.size() - 4);
  Reader end(bytes.substr(body.size()));
  if (end.Take<std::uint32_t>() != base::Crc32c(body)) return Corrupt();
  Reader reader(body.substr(kMagic.size()));
  if (const auto version = reader.Take<std::uint32_t>(); version != kVersion) {
    return base::Fail(
        base::Code::kFailedPrecondition, "spool.state_version",
        fmt::format("spool.state is of version {}, which is not known here", version));
  }
  const std::size_t count = reader.Take<std::uint32_t>();
  if (count > kMaxHosts) return Corrupt();
  DrainState state;
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    std::string name = reader.TakeText();
    HostState host = TakeHost(&reader);
    if (!IsHostName(name) || host.streams.size() > HostState::kStreams) return Corrupt();
    state.insert_or_assign(std::move(name), std::move(host));
  }
  if (!reader.AtEnd()) return Corrupt();
  return state;
}

}  // namespace expanse::daemon::spool
