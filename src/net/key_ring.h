// The signing keys of the control plane over time: made at the first start, replaced on schedule,
// published before they sign and kept as long as a token they signed may live.
//
// Either a directory of our own (0700, one 0600 PEM file a key, named key-<microseconds>.pem after
// the time it was made), or a file that somebody mounts, which we only read: its first key signs
// and all of them verify.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/token_keys.h"

namespace expanse::net {

struct KeyRingOptions {
  std::string directory;
  std::string file;                                   // not empty: instead of the directory
  std::chrono::seconds rotate_after{30 * 24 * 3600};  // age at which a key stops signing
  std::chrono::seconds publish_ahead{600};  // a new key is published, but does not sign yet
  std::chrono::seconds keep_after{3600};    // longer than any token lives
};

// Thread-safe. Reads and writes files in Open, Maintain and Rotate only.
class KeyRing {
 public:
  // Fails with token_keys.permissions for files that others may read (directory) or write (file),
  // token_keys.pem for unreadable keys, os.*.
  static base::Result<std::unique_ptr<KeyRing>> Open(KeyRingOptions options, base::Clock& clock);

  // The key that signs now.
  std::shared_ptr<const SigningKey> Current() const;
  std::shared_ptr<const PublicKeySet> Public() const;
  std::string Jwks() const;

  // Makes the next key when it is due and forgets those that no live token needs. Cheap when
  // nothing is due; call it now and then.
  base::Status Maintain();
  // Makes a new key now, whatever the schedule says. It signs after publish_ahead.
  base::Status Rotate();

 private:
  KeyRing(KeyRingOptions options, base::Clock& clock)
      : options_(std::move(options)), clock_(clock) {}
  base::Status LoadFile();
  base::Status LoadDirectory();
  base::Status AddKeyLocked(base::WallTime now);
  base::Status DropOldLocked(base::WallTime now);
  std::size_t SignerLocked(base::WallTime now) const;
  void PublishLocked();
  std::string PathOf(const SigningKey& key) const;

  const KeyRingOptions options_;
  base::Clock& clock_;
  mutable std::mutex mutex_;  // guards all below; held over file writes, which are rare
  std::vector<std::shared_ptr<const SigningKey>>
      keys_;  // oldest first; a mounted file: as in the file
  std::shared_ptr<const PublicKeySet> public_;
  std::string jwks_;
};

}  // namespace expanse::net
