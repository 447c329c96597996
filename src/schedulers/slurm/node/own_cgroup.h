// A process that a Prolog started must not live in the job's cgroup: it would end with the job, and
// be counted as part of it. (Slurm runs Prologs there with PrologFlags=RunInJob.)
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace expanse::schedulers::slurm {

// Moves process `pid` out of the cgroups of Slurm jobs that it is in, to the top of each hierarchy,
// which a process may always be in. True when it was in one. `root` is "/" or a copy of a host's
// tree. Fails with os.* when it may not be moved (needs root).
base::Result<bool> LeaveJobCgroups(const std::string& root, pid_t pid);

}  // namespace expanse::schedulers::slurm
