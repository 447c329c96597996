// The Slurm jobs on this host: found by their cgroups, with what the hooks told of them, and what
// each of them has used so far. Knows nothing of executions: a job is what the node calls it. Used
// by the sampler of a worker node and by the controller's observer for its own host.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "collect/cgroup/reader.h"
#include "collect/collector.h"
#include "evidence/execution.h"
#include "schedulers/slurm/node/cgroup_discovery.h"
#include "schedulers/slurm/node/gpu_grants.h"
#include "schedulers/slurm/node/hook_event.h"

namespace expanse::schedulers::slurm {

struct NodeJobsOptions {
  std::string root = "/";  // or a copy of a host's tree
  std::size_t open_files = 256;
  std::chrono::milliseconds search_interval{30'000};  // for roots of cgroups
};

struct NodeJob {
  LocalJob id;       // as the cgroups name it, and its other name where a hook told it
  std::string node;  // empty: the host's own name
  std::vector<std::string> cgroups;
  std::optional<uid_t> uid;
  // When its Prolog ran, else when it was found, if it was not there before; else the epoch.
  base::WallTime started{};
  std::vector<std::string> gpu_uuids;  // empty: unknown
  // Where its cgroups do not tell the cpu time or the memory: what its processes descend from.
  std::vector<collect::TrackedWorkload::Root> roots;
  // Processes of its own, every half minute (CountTasks); 0: its ranks are dead.
  std::optional<std::size_t> tasks;
};

// What a job has used on this host, on one of its nodes.
struct JobReading {
  LocalJob id;
  std::string node;
  evidence::Usage usage;
  bool last = false;  // the job is gone from here
};

// Not thread-safe. Never blocks on anything but the kernel's files.
class NodeJobs {
 public:
  explicit NodeJobs(NodeJobsOptions options);

  // What a Prolog or Epilog told; before the Scan of the same tick.
  void TakeEvent(const HookEvent& event);
  // Looks which jobs there are and reads what they use: a job of age A about every A/33, once a
  // second at most and every 10 s at least, so that little is missing when it ends between two
  // looks. To be called about every second.
  void Scan(const collect::Tick& tick);

  // As of the last Scan, by (node, id).
  const std::vector<NodeJob>& jobs() const { return jobs_; }

  // Readings to be told to the controller, oldest first: each job's last one, and some before it.
  // They stay until dropped.
  const std::deque<JobReading>& readings() const { return readings_; }
  void DropReadings(std::size_t count);

  const DiscoveryFigures& figures() const { return discovery_.figures(); }
  // Why the cgroups cannot be looked at; empty: they can.
  const std::string& trouble() const { return trouble_; }
  // Of the jobs that run by their cgroups: those without any process of their own.
  std::size_t jobs_without_tasks() const;
  // slurmstepd processes run on this host, but no job has a cgroup: since that long.
  std::chrono::nanoseconds blind_for() const { return blind_for_; }

 private:
  using Key = std::pair<std::string, LocalJob>;  // node, as the cgroups name it
  struct Followed {
    Followed(const std::string& root, const std::vector<std::string>& paths, collect::FdBudget* fds)
        : cgroups(paths), reader(root, paths, fds) {}
    NodeJob job;
    std::vector<std::string> cgroups;
    collect::CgroupReader reader;
    base::MonoTime found_at{};
    base::MonoTime next_read{};
    base::MonoTime next_report{};
    base::MonoTime next_count{};
    std::uint64_t events = 0;  // how many there had been when they were last looked at
    bool present = true;
    bool was_read = false;
    bool needs_roots = false;
    std::uint64_t need_peak = 0;
    std::uint64_t cache_peak = 0;
    std::uint64_t kernel_peak = 0;  // of all that was charged
    std::uint64_t untold = 0;       // charged at the last look, not yet in the kernel's statistics
    evidence::Usage usage;
  };
  struct Granted {
    HookEvent event;
    std::uint64_t order = 0;
  };

  void Search(const collect::Tick& tick);
  Followed& Follow(const JobCgroups& found, const collect::Tick& tick);
  void ApplyEvent(Followed& followed) const;
  void ForgetEvents(const NodeJob& job);
  const HookEvent* EventOf(const Followed& followed) const;
  void Read(Followed& followed, const collect::Tick& tick);
  void LookAtProcesses(Followed& followed, const collect::Tick& tick);
  static evidence::Usage UsageOf(const Followed& followed, bool last);
  void Report(const Followed& followed, bool last);

  const NodeJobsOptions options_;
  CgroupDiscovery discovery_;
  GpuNumbers gpus_;
  collect::FdBudget fds_;
  std::map<Key, std::unique_ptr<Followed>> followed_;
  std::vector<NodeJob> jobs_;
  std::deque<JobReading> readings_;
  // Events of jobs that began, by node and raw id; bounded, the oldest are forgotten.
  std::map<std::pair<std::string, std::uint32_t>, Granted> begun_;
  std::uint64_t events_ = 0;
  std::uint64_t scans_ = 0;
  base::MonoTime next_search_{};
  std::string trouble_;
  std::optional<base::MonoTime> blind_since_;
  std::chrono::nanoseconds blind_for_{};
};

}  // namespace expanse::schedulers::slurm
