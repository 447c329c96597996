#include "daemon/privileges.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <string>

#include "base/files.h"
#include "base/text.h"

namespace expanse::daemon {
namespace {

// Numbers from <linux/capability.h>.
struct Need {
  int capability;
  std::string_view name;
  std::string_view without;
};
constexpr Need kNeeds[] = {
    {2, "CAP_DAC_READ_SEARCH",
     "files of other users' workloads (scripts, spool entries in closed directories)"},
    {19, "CAP_SYS_PTRACE", "disk I/O, executable and environment of other users' processes"},
};

}  // namespace

std::optional<std::uint64_t> ParseEffectiveCapabilities(std::string_view status) {
  for (std::string_view line : base::Split(status, '\n')) {
    constexpr std::string_view kKey = "CapEff:";
    if (!line.starts_with(kKey)) continue;
    const std::string_view hex = base::Trim(line.substr(kKey.size()));
    std::uint64_t mask = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), mask, 16);
    if (error != std::errc() || end != hex.data() + hex.size() || hex.empty()) return std::nullopt;
    return mask;
  }
  return std::nullopt;
}

evidence::HealthRow PrivilegesRow(std::uint64_t capabilities, unsigned uid, base::WallTime now) {
  std::string missing;
  for (const Need& need : kNeeds) {
    if ((capabilities >> need.capability & 1U) != 0) continue;
    missing += fmt::format("{}{} (needs {})", missing.empty() ? "" : "; ", need.without, need.name);
  }
  evidence::HealthRow row{.collector = "privileges",
                          .status = evidence::HealthStatus::kOk,
                          .checked_at = now,
                          .figures = {{"uid", double(uid)}}};
  if (missing.empty()) return row;
  row.status = evidence::HealthStatus::kDegraded;
  row.reason = "limited_view";
  row.message = fmt::format("runs as uid {} and cannot see: {}", uid, missing);
  return row;
}

evidence::HealthRow OwnPrivileges(base::WallTime now) {
  auto status = base::ReadFile("/proc/self/status", 64U << 10);
  const auto mask = status ? ParseEffectiveCapabilities(*status) : std::nullopt;
  return PrivilegesRow(mask.value_or(::geteuid() == 0 ? ~std::uint64_t{0} : 0), ::geteuid(), now);
}

}  // namespace expanse::daemon
