// The spool's directories as the controller may believe them: lists, opens, deletes and sets aside
// by names that were checked, relative to open directories, never following a link.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/time.h"
#include "daemon/file_io.h"
#include "daemon/spool/segment_format.h"

namespace expanse::daemon::spool {

struct SpoolReaderOptions {
  std::string spool;          // <prefix>/spool
  std::vector<uid_t> owners;  // besides root and our own user
  std::size_t quarantine_files = 256;
  std::uint64_t quarantine_bytes = 256U << 20;
};

struct HostEntry {
  std::string name;
  std::int64_t changed_ns = 0;  // the directory's mtime
};

struct Hosts {
  std::vector<HostEntry> hosts;  // sorted
  std::uint64_t strange = 0;     // entries that are no host's directory
  std::uint64_t untrusted = 0;   // directories that others may write to or own
};

struct HostListing {
  std::vector<SegmentName> segments;  // the oldest ones, in order
  bool more = false;                  // there are further ones
  std::uint64_t strange = 0;          // other names, dot files not counted
};

struct SegmentFile {
  std::string bytes;
  base::WallTime modified{};
};

// Not thread-safe; every call may hang with the file system.
class SpoolReader {
 public:
  SpoolReader(SpoolReaderOptions options, FileIo& files);

  // Fails with spool.missing, spool.untrusted (others could replace what is in it) or os.*.
  base::Status Open();
  bool is_open() const { return spool_.valid(); }
  // The spool was moved, unmounted or replaced: Open again.
  bool IsStale() const;
  // True for file systems on which a new file is seen at once, false for NFS and the like.
  bool SeesAtOnce() const;
  // How far the file server's clock is ahead of `now`, from a file made for it. Nothing: not known.
  std::optional<std::chrono::microseconds> ServerSkew(base::WallTime now);

  // With the directories' times, which are cheap: one stat a host.
  base::Result<Hosts> ListHosts() const;
  std::optional<std::int64_t> ChangedAt(const std::string& host) const;
  // The `limit` oldest segments after those in `known` (sorted by name).
  base::Result<HostListing> List(const std::string& host, std::size_t limit,
                                 const std::vector<std::string>& known) const;
  // Fails with spool.forged, spool.too_large, os.ENOENT when it is gone, or os.*.
  base::Result<SegmentFile> Read(const std::string& host, const SegmentName& name) const;
  base::Status Remove(const std::string& host, const SegmentName& name);
  // Moves it to .quarantine/ while there is room, else deletes it.
  base::Status Quarantine(const std::string& host, const SegmentName& name,
                          std::string_view reason);

 private:
  base::Result<base::UniqueFd> OpenHost(const std::string& host, uid_t* owner) const;
  bool IsTrusted(uid_t owner) const;
  base::Status OpenQuarantine();

  const SpoolReaderOptions options_;
  FileIo& files_;
  base::UniqueFd spool_;
  base::UniqueFd quarantine_;
  std::uint64_t quarantined_ = 0;
  std::uint64_t quarantined_bytes_ = 0;
};

}  // namespace expanse::daemon::spool
