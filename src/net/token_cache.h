// Verifies access tokens and remembers those that were good, by their SHA-256: a client sends the
// same token for minutes, and verifying one costs about half a millisecond of CPU.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "base/time.h"
#include "net/token.h"

namespace expanse::net {

// Thread-safe. Holds at most `capacity` tokens and forgets the oldest; only tokens that verified
// get in, so that forged ones cannot push others out.
class CachingVerifier {
 public:
  explicit CachingVerifier(TokenPolicy policy, std::size_t capacity = 4096)
      : clock_skew_(policy.clock_skew), verifier_(std::move(policy)), capacity_(capacity) {}

  // As TokenVerifier::Verify. What is remembered counts for this key set only: a key that was taken
  // out of use takes its tokens with it. Revocations are the caller's to check.
  base::Result<Caller> Verify(std::string_view token,
                              const std::shared_ptr<const PublicKeySet>& keys, base::WallTime now);
  std::size_t size() const;

 private:
  const std::chrono::seconds clock_skew_;
  const TokenVerifier verifier_;
  const std::size_t capacity_;
  mutable std::mutex mutex_;  // guards all below; not held while verifying
  std::shared_ptr<const PublicKeySet> keys_;
  std::unordered_map<std::string, Caller> good_;  // by digest
  std::deque<std::string> order_;                 // digests, oldest first
};

}  // namespace expanse::net
