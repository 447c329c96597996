// Spool files come from any user of the host. What decodes must encode to something that decodes to
// the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/crypto.h"
#include "schedulers/host/spool_event.h"

using namespace expanse;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::WallTime now{std::chrono::seconds(1'800'000'000)};
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.size() >= 16) {
    // A right checksum, or the fuzzer would never get past it.
    const std::uint32_t length = static_cast<std::uint32_t>(bytes.size() - 16);
    const std::uint32_t sum = base::Crc32c(std::string_view(bytes).substr(16));
    for (int i = 0; i < 4; ++i) {
      bytes[8 + static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i));
      bytes[12 + static_cast<std::size_t>(i)] = static_cast<char>(sum >> (8 * i));
    }
  }
  const auto event = schedulers::host::DecodeSpoolEvent(bytes, now);
  if (!event) return 0;
  const std::string again = schedulers::host::EncodeSpoolEvent(*event);
  const auto second = schedulers::host::DecodeSpoolEvent(again, now);
  if (!second || schedulers::host::EncodeSpoolEvent(*second) != again) std::abort();
  return 0;
}
