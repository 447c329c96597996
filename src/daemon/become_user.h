// From root to an ordinary user, for a sampler that a hook started.
#pragma once

#include <string>

#include "base/result.h"

namespace expanse::daemon {

// Becomes `user` with all its groups, for good, and keeps of root's rights what reading the
// workloads of others takes: CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE, and, with `reads_as_users`,
// CAP_SETUID and CAP_SETGID to read the files of jobs as their users (collect/files/user_files.h;
// the systemd units grant the same). Success and nothing else when this is that user already. Call
// it before the first thread. Fails with user.unknown or os.*.
base::Status BecomeUser(const std::string& user, bool reads_as_users);

}  // namespace expanse::daemon
