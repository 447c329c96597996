// What a sampler observes on a worker node: the jobs there by what the node calls them, and what
// hooks say of them. It knows no executions; the controller does when it takes the reports from the
// spool (schedulers/key_resolver.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedulers/observer.h"
#include "schedulers/slurm/node/hook_directory.h"
#include "schedulers/slurm/node/node_jobs.h"

namespace expanse::schedulers::slurm {

struct NodeObserverOptions {
  std::string hook_directory;  // <run directory>/hooks
  std::string quarantine;      // for files there that are no events; empty: they are deleted
  NodeJobsOptions jobs;
};

// A job as the collectors are to follow it, under its node-local key.
collect::TrackedWorkload TrackedJob(const NodeJob& job);

// Not thread-safe. Emits reports (node_report.h); what is refused stays, in the hooks' directory or
// in a bounded list.
class NodeObserver final : public Observer {
 public:
  explicit NodeObserver(NodeObserverOptions options);

  std::string_view name() const override { return "slurm_node"; }
  base::Status Start() override { return {}; }
  void Observe(const collect::Tick& tick, EvidenceSink& sink) override;
  const std::vector<collect::TrackedWorkload>& running() const override { return running_; }
  std::vector<evidence::HealthRow> health() const override;
  void Stop() override {}

  // Jobs or events were there at the last look.
  bool busy() const { return busy_; }

 private:
  void TakeEvents(const collect::Tick& tick, EvidenceSink& sink);
  void SendReadings(const collect::Tick& tick, EvidenceSink& sink);

  HookDirectory hooks_;
  NodeJobs jobs_;
  base::Status last_look_;
  base::WallTime looked_at_{};
  std::vector<collect::TrackedWorkload> running_;
  bool busy_ = false;
};

}  // namespace expanse::schedulers::slurm
