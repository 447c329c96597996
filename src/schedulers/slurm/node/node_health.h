// What this host's part of a cluster's health is: rows for a sampler, and for the controller about
// the host that it runs on.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "evidence/records.h"
#include "schedulers/slurm/node/hook_directory.h"
#include "schedulers/slurm/node/node_jobs.h"

namespace expanse::schedulers::slurm {

// "slurm_jobs". failed: no_cgroups (steps of Slurm have been running for a minute and no job has a
// cgroup: nothing can be told of any job here). degraded: unreadable, search_cut_short (there may
// be jobs that were not found).
evidence::HealthRow JobsHealth(const NodeJobs& jobs, base::WallTime now);

// "slurm_hooks". degraded: what the last look said (hook.untrusted, os.*), or quarantined (within
// the last ten minutes something else than events lay there).
evidence::HealthRow HooksHealth(const HookDirectory& hooks, const base::Status& last_look,
                                base::WallTime now);

}  // namespace expanse::schedulers::slurm
