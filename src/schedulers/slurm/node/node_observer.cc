#include "schedulers/slurm/node/node_observer.h"

#include <utility>

#include "schedulers/slurm/node/node_health.h"
#include "schedulers/slurm/node/node_report.h"

namespace expanse::schedulers::slurm {

collect::TrackedWorkload TrackedJob(const NodeJob& job) {
  collect::TrackedWorkload workload;
  workload.key = LocalKey(job.id);
  workload.node = job.node;
  workload.cgroups = job.cgroups;
  workload.roots = job.roots;
  workload.uid = job.uid.value_or(0);
  workload.started = job.started;
  workload.gpu_uuids = job.gpu_uuids;
  return workload;
}

NodeObserver::NodeObserver(NodeObserverOptions options)
    : hooks_(std::move(options.hook_directory), std::move(options.quarantine)),
      jobs_(std::move(options.jobs)) {}

void NodeObserver::TakeEvents(const collect::Tick& tick, EvidenceSink& sink) {
  auto entries = hooks_.Look(tick.wall);
  last_look_ = entries ? base::Status{} : std::unexpected(entries.error());
  if (!entries) return;
  busy_ = busy_ || !entries->empty();
  for (const HookDirectory::Entry& entry : *entries) {
    jobs_.TakeEvent(entry.event);
    const auto taken = sink.Emit(MakeReport(entry.event), entry.event.at);
    // One that no sink can ever take must not hold up the others.
    if (!taken && taken.error().code != base::Code::kInvalidArgument) return;
    if (auto removed = hooks_.Remove(entry); !removed) {
      last_look_ = std::move(removed);
      return;
    }
  }
}

void NodeObserver::SendReadings(const collect::Tick& tick, EvidenceSink& sink) {
  std::size_t sent = 0;
  for (const JobReading& reading : jobs_.readings()) {
    const auto taken = sink.Emit(
        MakeUsageReport(reading.id, reading.node, reading.usage, reading.last), tick.wall);
    if (!taken && taken.error().code != base::Code::kInvalidArgument) break;
    ++sent;
  }
  jobs_.DropReadings(sent);
}

void NodeObserver::Observe(const collect::Tick& tick, EvidenceSink& sink) {
  looked_at_ = tick.wall;
  busy_ = false;
  TakeEvents(tick, sink);
  jobs_.Scan(tick);
  SendReadings(tick, sink);
  running_.clear();
  for (const NodeJob& job : jobs_.jobs()) running_.push_back(TrackedJob(job));
  busy_ = busy_ || !running_.empty() || !jobs_.readings().empty();
}

std::vector<evidence::HealthRow> NodeObserver::health() const {
  return {JobsHealth(jobs_, looked_at_), HooksHealth(hooks_, last_look_, looked_at_)};
}

}  // namespace expanse::schedulers::slurm
