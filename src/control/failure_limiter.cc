#include "control/failure_limiter.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/crypto.h"

namespace expanse::control {

double FailureLimiter::Decayed(const Entry& entry, base::MonoTime now) const {
  return std::max(
      0.0, entry.failures - base::ToSeconds(now - entry.at) / base::ToSeconds(options_.refill));
}

bool FailureLimiter::Allows(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at = by_key_.find(key);
  return at == by_key_.end() || Decayed(*at->second, clock_.Mono()) + 1 <= options_.burst;
}

void FailureLimiter::NoteFailure(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const base::MonoTime now = clock_.Mono();
  if (const auto at = by_key_.find(key); at != by_key_.end()) {
    at->second->failures = Decayed(*at->second, now) + 1;
    at->second->at = now;
    entries_.splice(entries_.begin(), entries_, at->second);
    return;
  }
  if (entries_.size() >= options_.max_keys) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, 1, now});
  by_key_.emplace(key, entries_.begin());
}

std::size_t FailureLimiter::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::string PeerNetwork(std::string_view peer) {
  std::string host(peer.substr(0, peer.rfind(':')));
  if (!host.starts_with('[') || !host.ends_with(']')) return host;
  host = host.substr(1, host.size() - 2);
  std::array<char, 16> address{};
  if (inet_pton(AF_INET6, host.c_str(), address.data()) != 1) return host;
  constexpr std::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  if (std::string_view(address.data(), 12) == kMapped) {  // an IPv4 client of a dual-stack listener
    return base::HexEncode(std::string_view(address.data(), 16));
  }
  return base::HexEncode(std::string_view(address.data(), 8)) + "/64";
}

}  // namespace expanse::control
