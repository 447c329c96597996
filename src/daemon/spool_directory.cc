#include "daemon/spool_directory.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/files.h"

namespace expanse::daemon {

base::Status MakeSpoolDirectory(const std::string& path, bool is_root) {
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    // Closed until its mode is right.
    if (::mkdir(part.c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return base::FailErrno(errno, "mkdir " + part);
    }
    const mode_t mode = !is_root ? 0700 : at == path.size() ? 01733 : 0755;
    if (::chmod(part.c_str(), mode) != 0) return base::FailErrno(errno, "chmod " + part);
  }
  return {};
}

}  // namespace expanse::daemon
