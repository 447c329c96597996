// The ids whose access tokens are refused although they verify. Kept in memory for the control
// plane's own callers, where a revocation works at once, and for the list that other planes fetch.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/records/identity_store.h"

namespace expanse::control {

// Thread-safe. The store has the durable copy: it writes a revocation in the transaction of the
// change itself, and the caller then adds it here.
class RevocationList {
 public:
  // `keep`: how long a token made just before a revocation may still verify, and a margin.
  RevocationList(store::IdentityStore& store, std::chrono::seconds keep)
      : store_(store), keep_(keep) {}

  base::Status Load(base::WallTime now);
  void Add(std::string_view subject, base::WallTime now);
  bool Contains(std::string_view subject) const;
  std::vector<store::Revocation> List() const;
  // Forgets what no token can carry any more, here and in the store.
  base::Status Prune(base::WallTime now);

 private:
  store::IdentityStore& store_;
  const std::chrono::seconds keep_;
  mutable std::mutex mutex_;  // guards subjects_; not held over store calls
  std::map<std::string, base::WallTime, std::less<>> subjects_;
};

}  // namespace expanse::control
