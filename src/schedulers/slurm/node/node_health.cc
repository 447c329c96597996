#include "schedulers/slurm/node/node_health.h"

#include <fmt/format.h>

#include <chrono>

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

// A step's cgroup may come a moment after its slurmstepd.
constexpr auto kBlindUntilAlarm = 1min;
constexpr auto kQuarantineShownFor = 10min;

}  // namespace

evidence::HealthRow JobsHealth(const NodeJobs& jobs, base::WallTime now) {
  const DiscoveryFigures& found = jobs.figures();
  evidence::HealthRow row{.collector = "slurm_jobs",
                          .status = evidence::HealthStatus::kOk,
                          .checked_at = now,
                          .figures = {{"jobs", double(jobs.jobs().size())},
                                      {"jobs_without_tasks", double(jobs.jobs_without_tasks())},
                                      {"roots", double(found.roots)},
                                      {"steps", double(found.stepds)},
                                      {"steps_elsewhere", double(found.stepds_elsewhere)}}};
  if (!jobs.trouble().empty()) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "unreadable";
    row.message = jobs.trouble();
  } else if (jobs.blind_for() >= kBlindUntilAlarm) {
    row.status = evidence::HealthStatus::kFailed;
    row.reason = "no_cgroups";
    row.message = fmt::format(
        "{} steps of Slurm run here, and no job has a cgroup: jobs cannot be sampled; see "
        "ProctrackType and JobAcctGatherType in slurm.conf",
        found.stepds_elsewhere);
  } else if (!found.complete) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "search_cut_short";
    row.message = "there are so many cgroups that not all were looked at";
  }
  return row;
}

evidence::HealthRow HooksHealth(const HookDirectory& hooks, const base::Status& last_look,
                                base::WallTime now) {
  const HookDirectoryFigures& figures = hooks.figures();
  evidence::HealthRow row{.collector = "slurm_hooks",
                          .status = evidence::HealthStatus::kOk,
                          .checked_at = now,
                          .figures = {{"events", double(figures.taken)},
                                      {"waiting", double(figures.waiting)},
                                      {"quarantined", double(figures.quarantined)}}};
  if (figures.last_at != base::WallTime{}) {
    row.figures["last_event_age_s"] = base::ToSeconds(now - figures.last_at);
  }
  if (!last_look) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = last_look.error().reason;
    row.message = last_look.error().message;
  } else if (figures.quarantined > 0 && now - figures.quarantined_at < kQuarantineShownFor) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "quarantined";
    row.message = "files that are no events lie in the hooks' directory; the log names them";
  }
  return row;
}

}  // namespace expanse::schedulers::slurm
