// Where the daemon's threads leave their health rows and the heartbeat thread picks them up.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "evidence/records.h"

namespace expanse::daemon {

// Thread-safe.
class HealthBoard {
 public:
  // Replaces the rows that `section` posted before, and notes that it is alive.
  void Post(std::string_view section, std::vector<evidence::HealthRow> rows, base::MonoTime now) {
    std::scoped_lock lock(mutex_);
    sections_.insert_or_assign(std::string(section), Section{std::move(rows), now});
  }
  // The section is alive; its rows stay.
  void Touch(std::string_view section, base::MonoTime now) {
    std::scoped_lock lock(mutex_);
    if (const auto found = sections_.find(section); found != sections_.end())
      found->second.at = now;
  }
  // All rows; a section that gave no sign of life for `stalled_after` adds a failed row of its own.
  std::vector<evidence::HealthRow> Rows(base::MonoTime now, base::WallTime wall,
                                        base::Duration stalled_after) const;

 private:
  struct Section {
    std::vector<evidence::HealthRow> rows;
    base::MonoTime at{};
  };
  mutable std::mutex mutex_;  // guards sections_
  std::map<std::string, Section, std::less<>> sections_;
};

}  // namespace expanse::daemon
