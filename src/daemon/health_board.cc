#include "daemon/health_board.h"

#include <fmt/format.h>

namespace expanse::daemon {

std::vector<evidence::HealthRow> HealthBoard::Rows(base::MonoTime now, base::WallTime wall,
                                                   base::Duration stalled_after) const {
  std::scoped_lock lock(mutex_);
  std::vector<evidence::HealthRow> all;
  for (const auto& [name, section] : sections_) {
    all.insert(all.end(), section.rows.begin(), section.rows.end());
    if (now - section.at <= stalled_after) continue;
    all.push_back(
        {.collector = name,
         .status = evidence::HealthStatus::kFailed,
         .reason = "stalled",
         .message = fmt::format("no sign of life for {:.0f} s", base::ToSeconds(now - section.at)),
         .checked_at = wall,
         .figures = {}});
  }
  return all;
}

}  // namespace expanse::daemon
