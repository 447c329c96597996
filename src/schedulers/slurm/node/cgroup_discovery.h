// Which Slurm jobs have cgroups on this host, and where. Nothing about their place is assumed: it
// depends on the version of Slurm (job ids, or SLUIDs since 26.05), on the version of cgroups, on
// how Slurm was built (one slurmd on a host or several) and on cgroup.conf.
//
//   v1  <mount>/slurm[_<node>]/uid_N/job_N
//   v2  <mount>/…/[<node>_]slurmstepd.scope/{job_N,sXXXXXXXXXXXXX}
//
// Directories that hold jobs ("roots") are found by name near the mounts, and wherever a running
// slurmstepd says its cgroup is, if they are root's: a user who may make cgroups must not make up
// jobs. Sources: Slurm's cgroups.html and cgroup_v2.html, its cgroup/v1
// and cgroup/v2 plugins, and the reports of collectors that lost their jobs when a path changed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/cgroup/hierarchy.h"
#include "schedulers/slurm/node/node_report.h"

namespace expanse::schedulers::slurm {

// The job that a directory of this name holds: "job_41982", "s5K1KKYAYG5D00"; nothing for others.
std::optional<LocalJob> JobOfDirectory(std::string_view name);
// The node whose slurmd made a root of this name: "n1" of "slurm_n1" (v1) or
// "n1_slurmstepd.scope" (v2); empty for "slurm" and "slurmstepd.scope", and for other names.
std::string NodeOfRoot(std::string_view name);

// A cgroup's path, relative to its mount, taken apart: "/slurm_n1/uid_7/job_5/step_0" is root
// "/slurm_n1" and job 5.
struct JobPath {
  std::string root;  // may be "" (the mount itself)
  LocalJob job;
};
std::optional<JobPath> ParseJobPath(std::string_view path);

struct JobCgroups {
  LocalJob job;
  std::string node;          // of the root; empty: the host's own
  std::optional<uid_t> uid;  // where the path tells it (v1)
  // Absolute, without the root prefix, for TrackedWorkload: one (v2) or one for each v1 hierarchy.
  std::vector<std::string> cgroups;
};

// Processes of the job's own in its steps: neither slurmstepd's nor the one that keeps the extern
// step alive. 0: its ranks are dead, whatever the scheduler says. Nothing when there are no steps
// (the job begins, or its cgroup was left behind).
std::optional<std::size_t> CountTasks(const std::string& root,
                                      const std::vector<std::string>& cgroups);

// The slurmstepd of each of the job's steps: all its processes descend from them.
std::vector<pid_t> StepLeaders(const std::string& root, const std::vector<std::string>& cgroups);

struct DiscoveryFigures {
  std::size_t roots = 0;             // directories that may hold jobs
  std::size_t jobs = 0;              // that had cgroups at the last listing
  std::size_t stepds = 0;            // slurmstepd processes at the last search
  std::size_t stepds_elsewhere = 0;  // … that are in no job's cgroup: Slurm was told to use none
  bool complete = true;              // the search was not cut short by its bounds
};

// Not thread-safe.
class CgroupDiscovery {
 public:
  // `root` is "/" or a copy of a host's tree; a search looks at so many directories of a hierarchy
  // at most. Touches nothing.
  explicit CgroupDiscovery(std::string root, std::size_t most_directories = 3000);

  // Looks for roots; for every half minute: it lists the upper levels of the hierarchies and looks
  // at every process's name. Fails when the mounts cannot be read; what was known stays then.
  base::Status FindRoots();
  // The jobs below the known roots, by (node, job). Cheap: lists the roots (and the users below
  // them, v1), not the jobs.
  std::vector<JobCgroups> ListJobs();

  const collect::CgroupHierarchy& hierarchy() const { return hierarchy_; }
  const DiscoveryFigures& figures() const { return figures_; }

 private:
  struct Root {
    std::string path;  // absolute, without the root prefix
    std::string node;
    bool operator==(const Root&) const = default;
  };
  bool IsTrusted(const std::string& path) const;
  void AddRoot(const std::string& mount, std::string_view relative);
  void SearchBelow(const std::string& mount);
  void AskStepds();
  std::string OnHost(std::string_view path) const;

  const std::string root_;
  const std::size_t most_directories_;
  collect::CgroupHierarchy hierarchy_;
  std::vector<Root> roots_;
  DiscoveryFigures figures_;
};

}  // namespace expanse::schedulers::slurm
