// Opening files with the rights of a user whose workload they belong to, and never with our own.
//
// Linux keeps credentials per thread; only glibc's wrappers hand a change on to all threads. So one
// thread of ours can take the file-system user and group id (setfsuid(2), setfsgid(2)) and the
// supplementary groups (setgroups(2) by its number) of a user, drop its effective capabilities
// (capset(2)), open and read, and go back, while all others go on as they are. The real and
// effective ids stay ours: nobody can signal or trace us meanwhile. What the kernel does:
//   - root without the switch could read all; setfsuid from 0 to another id takes the file
//     capabilities (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, ...) out of the effective set,
//   - a service user with CAP_SETUID and CAP_SETGID may switch too, but the kernel leaves it
//     CAP_DAC_READ_SEARCH: therefore the effective set is emptied here in every case,
//   - without those two capabilities the switch fails. Then only the daemon's own user's files can
//     be read, with its file capabilities dropped.
// setfsuid does not report failure, so each value is read back. Whatever is not as it must be ends
// in an error and not in a read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace expanse::collect {

struct UserIdentity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary ones
};

// From the system's user data base, which may be a directory service: may block for long, so not
// from the capture thread. Fails with user.unknown.
base::Result<UserIdentity> LookUpUser(uid_t uid);

// While one lives, the thread that made it reads files with `user`'s rights and has no effective
// capabilities. Ends on the thread that it began on; they do not nest. Do nothing with it but read
// the user's files.
class UserRights {
 public:
  // Fails with user.no_permission, the thread unchanged, if the kernel does not let us.
  static base::Result<UserRights> Assume(const UserIdentity& user);
  UserRights(UserRights&& other) noexcept;
  UserRights& operator=(UserRights&&) = delete;
  ~UserRights();

 private:
  UserRights() = default;
  struct Saved {
    uid_t fsuid = 0;
    gid_t fsgid = 0;
    std::vector<gid_t> groups;
    bool groups_changed = false;
    std::uint64_t effective = 0;
    std::uint64_t permitted = 0;
    std::uint64_t inheritable = 0;
  };
  static void Restore(const Saved& saved);
  bool active_ = false;
  Saved saved_;
};

// Opens a regular file for reading, once, and says what it is; the descriptor is what is read then,
// whatever happens to the name. Goes along the path step by step:
//   - `path` is absolute; symbolic links are followed as the thread's rights allow, at most 40, but
//     never those of /proc, which would lead into our own process; with `follow_links` false none,
//   - FIFOs, devices and sockets are not opened at all,
//   - files of kernel file systems (/proc, /sys, cgroups) are not a user's files: refused.
// Fails with files.not_found, files.no_permission, files.not_regular, files.link, files.replaced
// (somebody exchanged the file while it was opened: try again) or the system's error. Blocks as
// long as the file system does.
base::Result<base::UniqueFd> OpenRegularFile(const std::string& path, bool follow_links = true);

// How CollectSources and the readers of logs open what they read.
using FileOpener = std::function<base::Result<base::UniqueFd>(const std::string& path)>;

// Root's own files could be links to anything, planted in directories of others: they are opened
// without following any.
inline base::Result<base::UniqueFd> OpenAs(const UserIdentity& user, const std::string& path) {
  return OpenRegularFile(path, /*follow_links=*/user.uid != 0);
}

}  // namespace expanse::collect
