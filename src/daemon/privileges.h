// What the daemon may see, given the user and the capabilities it runs with.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "evidence/records.h"

namespace expanse::daemon {

// The effective capability set ("CapEff:" in /proc/PID/status, proc(5)), as a bit mask.
std::optional<std::uint64_t> ParseEffectiveCapabilities(std::string_view status);

// Collector "privileges": ok when nothing is out of sight, else degraded with reason "limited_view"
// and a message that names what is.
evidence::HealthRow PrivilegesRow(std::uint64_t capabilities, unsigned uid, base::WallTime now);
// The same for this process.
evidence::HealthRow OwnPrivileges(base::WallTime now);

}  // namespace expanse::daemon
