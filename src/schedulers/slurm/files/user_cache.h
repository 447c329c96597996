// Users' ids and groups, asked of the system at most every few minutes each. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <unordered_map>

#include "base/time.h"
#include "collect/files/user_files.h"

namespace expanse::schedulers::slurm {

class UserCache {
 public:
  using LookUp = std::function<base::Result<collect::UserIdentity>(uid_t)>;
  explicit UserCache(LookUp look_up) : look_up_(std::move(look_up)) {}

  // Blocks as the system's user data base does. Valid until the next Get.
  const base::Result<collect::UserIdentity>& Get(uid_t uid, base::MonoTime now) {
    const auto known = users_.find(uid);
    if (known != users_.end() && now < known->second.until) return known->second.user;
    if (users_.size() >= kMaxUsers) users_.clear();
    auto user = look_up_(uid);
    const base::MonoTime until = now + (user ? kKnownFor : kUnknownFor);
    return users_.insert_or_assign(uid, Entry{std::move(user), until}).first->second.user;
  }

 private:
  struct Entry {
    base::Result<collect::UserIdentity> user;
    base::MonoTime until{};
  };
  static constexpr std::chrono::minutes kKnownFor{10};
  static constexpr std::chrono::minutes kUnknownFor{1};
  static constexpr std::size_t kMaxUsers = 4096;

  LookUp look_up_;
  std::unordered_map<uid_t, Entry> users_;
};

}  // namespace expanse::schedulers::slurm
