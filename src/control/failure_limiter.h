// Slows down peers that keep presenting wrong secrets. Guessing 256 bits is hopeless anyway; this
// keeps a broken or hostile client from filling the log and the database with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/time.h"

namespace expanse::control {

// Thread-safe. Holds at most `max_keys` keys and forgets those that failed longest ago.
class FailureLimiter {
 public:
  struct Options {
    int burst = 20;                           // failures in a row that are answered at once
    std::chrono::milliseconds refill{3'000};  // one more is forgiven after each
    std::size_t max_keys = 4096;
  };
  explicit FailureLimiter(base::Clock& clock) : FailureLimiter(clock, Options()) {}
  FailureLimiter(base::Clock& clock, Options options) : options_(options), clock_(clock) {}

  // False while the key has used up its failures.
  bool Allows(const std::string& key);
  void NoteFailure(const std::string& key);
  std::size_t size() const;

 private:
  struct Entry {
    std::string key;
    double failures = 0;  // decays with time
    base::MonoTime at{};
  };
  double Decayed(const Entry& entry, base::MonoTime now) const;

  const Options options_;
  base::Clock& clock_;
  mutable std::mutex mutex_;  // guards all below
  std::list<Entry> entries_;  // latest failure first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

// The part of a peer ("192.0.2.7:50412", "[2001:db8::1]:80") that a client cannot change at will:
// the IPv4 address, or the /64 network of an IPv6 one.
std::string PeerNetwork(std::string_view peer);

}  // namespace expanse::control
