// The daemon's small text inputs: identity file, health file, /proc/PID/status.
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "daemon/health_file.h"
#include "daemon/privileges.h"
#include "net/compute_identity.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace expanse;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto identity = net::DecodeComputeIdentity(text)) {
    const auto again = net::DecodeComputeIdentity(net::EncodeComputeIdentity(*identity));
    EXPANSE_CHECK(again && *again == *identity);
  }
  if (const auto health = daemon::ParseHealth(text)) {
    EXPANSE_CHECK(daemon::ParseHealth(daemon::FormatHealth(*health)).has_value());
    const auto verdict =
        daemon::JudgeHealth(*health, health->boot_id, health->mono, std::chrono::seconds(90));
    EXPANSE_CHECK(verdict.line.find('\n') == std::string::npos);
  }
  (void)daemon::ParseEffectiveCapabilities(text);
  return 0;
}
