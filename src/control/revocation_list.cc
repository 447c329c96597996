#include "control/revocation_list.h"

namespace expanse::control {

base::Status RevocationList::Load(base::WallTime now) {
  EXPANSE_ASSIGN_OR_RETURN(const auto revocations, store_.RevocationsSince(now - keep_));
  for (const store::Revocation& revocation : revocations)
    Add(revocation.subject, revocation.revoked_at);
  return {};
}

void RevocationList::Add(std::string_view subject, base::WallTime now) {
  const std::lock_guard lock(mutex_);
  subjects_.emplace(subject, now);
}

bool RevocationList::Contains(std::string_view subject) const {
  const std::lock_guard lock(mutex_);
  return subjects_.contains(subject);
}

std::vector<store::Revocation> RevocationList::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<store::Revocation> list;
  list.reserve(subjects_.size());
  for (const auto& [subject, at] : subjects_) list.push_back({subject, at});
  return list;
}

base::Status RevocationList::Prune(base::WallTime now) {
  const base::WallTime before = now - keep_;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(subjects_, [&](const auto& entry) { return entry.second < before; });
  }
  if (auto dropped = store_.DropRevocationsBefore(before); !dropped) {
    return std::unexpected(std::move(dropped).error().With("forgetting old revocations"));
  }
  return {};
}

}  // namespace expanse::control
