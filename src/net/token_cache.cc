#include "net/token_cache.h"

#include "base/crypto.h"

namespace expanse::net {

base::Result<Caller> CachingVerifier::Verify(std::string_view token,
                                             const std::shared_ptr<const PublicKeySet>& keys,
                                             base::WallTime now) {
  const std::string digest = base::Sha256(token);
  {
    const std::lock_guard lock(mutex_);
    if (keys_ != keys) {
      keys_ = keys;
      good_.clear();
      order_.clear();
    }
    // An expired one goes to the verifier, which says so.
    if (const auto at = good_.find(digest);
        at != good_.end() && now < at->second.expires_at + clock_skew_) {
      return at->second;
    }
  }
  EXPANSE_ASSIGN_OR_RETURN(Caller caller, verifier_.Verify(token, *keys, now));
  const std::lock_guard lock(mutex_);
  if (keys_ == keys && good_.emplace(digest, caller).second) {
    order_.push_back(digest);
    if (order_.size() > capacity_) {
      good_.erase(order_.front());
      order_.pop_front();
    }
  }
  return caller;
}

std::size_t CachingVerifier::size() const {
  const std::lock_guard lock(mutex_);
  return good_.size();
}

}  // namespace expanse::net
