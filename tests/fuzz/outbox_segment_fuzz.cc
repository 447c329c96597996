// FrameReader and the outbox's headers on any bytes: no crash, no endless loop, and what is read is
// in order, within the input, and no more than once.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/crypto.h"
#include "base/result.h"
#include "daemon/outbox_format.h"

namespace {

using namespace expanse;

void ReadAll(std::string_view bytes, std::uint32_t seed) {
  daemon::FrameReader reader(
      [bytes](std::uint64_t offset, std::size_t size, std::string* out) -> base::Status {
        const std::size_t from = std::min<std::size_t>(bytes.size(), offset);
        *out = bytes.substr(from, size);
        return {};
      },
      seed, 0, bytes.size());
  std::uint64_t last_sequence = 0;
  std::uint64_t last_end = 0;
  while (true) {
    const auto frame = reader.Next();
    EXPANSE_CHECK(frame.has_value());
    if (!frame->has_value()) break;
    EXPANSE_CHECK((*frame)->sequence > last_sequence);
    EXPANSE_CHECK((*frame)->end >= last_end + daemon::kFrameHeaderSize + (*frame)->payload.size());
    EXPANSE_CHECK((*frame)->end <= bytes.size());
    last_sequence = (*frame)->sequence;
    last_end = (*frame)->end;
  }
  EXPANSE_CHECK(reader.good_end() == last_end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)daemon::DecodeSegmentHeader(bytes);
  (void)daemon::DecodeOutboxState(bytes);
  ReadAll(bytes, 0);

  // Good frames survive whatever stands between them: the input is put between two. Its author does
  // not know the stream's id, so the seed changes with the input; a fuzzer that sees checksums
  // compared would otherwise learn to write a good header whose length swallows the second frame.
  const std::uint32_t seed = base::Crc32c(bytes, 0x9E3779B9);
  std::string segment;
  daemon::AppendFrame(seed, 1, "first", &segment);
  segment += bytes;
  daemon::AppendFrame(seed, ~0ULL, "last", &segment);
  std::uint64_t found = 0;
  daemon::FrameReader reader(
      [&segment](std::uint64_t offset, std::size_t count, std::string* out) -> base::Status {
        *out = segment.substr(std::min<std::size_t>(segment.size(), offset), count);
        return {};
      },
      seed, 0, segment.size());
  while (true) {
    const auto frame = reader.Next();
    EXPANSE_CHECK(frame.has_value());
    if (!frame->has_value()) break;
    if ((*frame)->payload == "first" || (*frame)->payload == "last") ++found;
  }
  EXPANSE_CHECK(found == 2);
  return 0;
}
