// The spool directory between `expanse run` (any user) and the daemon: one file per event, written
// under a temporary name and renamed, so that a reader never sees half of one.
//
// The directory is either shared, like a drop box (root's, mode 1733: everybody may add files,
// nobody may list them), or private (0700). A reader believes the directory and the owner of a
// file, as the kernel tells it; nothing that a file contains can change whose it is. See
// docs/formats/host-spool.md.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/time.h"
#include "schedulers/host/spool_event.h"

namespace expanse::schedulers::host {

// "<run id>.1-start" and so on.
std::string SpoolFileName(std::string_view run_id, SpoolKind kind);
struct SpoolName {
  std::string run_id;
  SpoolKind kind = SpoolKind::kStart;
};
std::optional<SpoolName> ParseSpoolFileName(std::string_view name);

// ~/.expanse/spool/host of the calling user; empty if there is no home.
std::string PrivateSpoolDirectory();

// Where one run writes its events: the given directory, and when that fails the private one, from
// which they travel on later. Not thread-safe.
class SpoolWriter {
 public:
  // Touches no file.
  SpoolWriter(std::string directory, std::string fallback);

  // Replaces the run's event of the same kind. `durable`: fsync before the rename. Fails when
  // neither directory takes it; the reason is that of the first.
  base::Status Write(const SpoolEvent& event, bool durable);

  // Why the first directory is not used; empty while it is.
  const std::string& trouble() const { return trouble_; }
  // Moves what earlier runs left in the fallback, at most `limit` files, if the first directory
  // works. Returns how many were moved.
  std::size_t MoveLeftovers(std::size_t limit);

 private:
  std::string directory_;
  std::string fallback_;
  bool own_ = false;  // the first directory is the private one
  std::string trouble_;
};

// One file of a spool, checked.
struct SpooledEvent {
  SpoolEvent event;
  uid_t owner = 0;
  ino_t inode = 0;
};

// Reads spool directories for the daemon. Not thread-safe.
class SpoolReader {
 public:
  // Fails when the directory is missing (spool.missing) or others could replace files in it
  // (spool.untrusted): it must be root's or ours, and sticky if anybody else may write to it.
  static base::Result<SpoolReader> Open(const std::string& directory);

  // Names of event files, in the order in which they are to be read; others go to `strange`.
  base::Result<std::vector<std::string>> List(std::vector<std::string>& strange) const;
  // When the directory last changed.
  base::Result<base::WallTime> ModifiedAt() const;

  // Fails with spool.forged (link, second name, not a regular file, an owner who cannot have
  // written it, run id that is not the name's), spool.too_large, or as DecodeSpoolEvent does.
  base::Result<SpooledEvent> Read(const std::string& name, base::WallTime now) const;
  // Removes `name` if it is still the file that was read. False: it is, and cannot be removed.
  bool Remove(const std::string& name, ino_t inode) const;
  // Takes a bad file out of the way: into `quarantine` (a directory of ours) while that holds fewer
  // than `limit` files, else it is deleted.
  void Quarantine(const std::string& name, const std::string& quarantine, std::size_t limit) const;
  // Deletes temporary files of writers that died, older than `age`.
  void SweepTemporary(const std::vector<std::string>& strange, base::WallTime now,
                      base::Duration age) const;

  const std::string& directory() const { return directory_; }

 private:
  SpoolReader(std::string directory, base::UniqueFd fd, uid_t owner, bool shared);
  std::string directory_;
  base::UniqueFd fd_;
  uid_t owner_ = 0;
  bool shared_ = false;  // others than the owner may write
};

}  // namespace expanse::schedulers::host
