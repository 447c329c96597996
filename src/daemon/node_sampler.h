// The sampler of a worker node: looks at the jobs there, samples them and the node, and leaves all
// of it in the spool that the nodes share. It has no identity, no credential and no network; the
// controller takes it from the spool. docs/daemon.md, "Sampling a Slurm node".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "daemon/file_io.h"
#include "daemon/sampler.h"
#include "daemon/spool/segment_writer.h"
#include "schedulers/slurm/files/job_files.h"
#include "schedulers/slurm/node/node_observer.h"

namespace expanse::daemon {

struct NodeSamplerOptions {
  std::chrono::milliseconds observe_interval{1000};
  std::chrono::milliseconds health_interval{10'000};
  // Ends by itself after that long without a job; 0: never.
  std::chrono::milliseconds end_when_idle_for{0};
  std::chrono::milliseconds drain_timeout{5000};
  SamplerOptions sampler;
  schedulers::slurm::NodeObserverOptions observer;
  spool::SegmentWriterOptions writer;
  // Jobs' output and sources, where the controller assigns them; without a directory of assignments
  // nothing is followed. `user_of_job` is filled in.
  schedulers::slurm::JobFilesOptions files;
};

// One thread: Start, then Step or Run, then Stop.
class NodeSampler {
 public:
  // Fails like SegmentWriter::Create. `files` and `clock` live until the process ends.
  static base::Result<std::unique_ptr<NodeSampler>> Create(
      NodeSamplerOptions options, std::vector<SamplerSource> sources,
      std::vector<evidence::HealthRow> fixed_rows, FileIo& files, base::Clock& clock);

  void Start();
  // One look. False: it has been idle for long enough.
  bool Step();
  // Start, then steps until `stop` or idle, `each_step` after each of them.
  void Run(std::stop_token stop, const std::function<void()>& each_step);
  // A last look and a last segment. False: the shared file system hangs; the next sampler ships
  // what is left.
  bool Stop();

 private:
  NodeSampler(NodeSamplerOptions options, std::vector<SamplerSource> sources,
              std::vector<evidence::HealthRow> fixed_rows,
              std::unique_ptr<spool::SegmentWriter> writer, base::Clock& clock);
  void PostHealth(const collect::Tick& tick);
  base::Status StartFiles();
  void StepFiles(const collect::Tick& tick);

  // Users of the jobs that run here, for the thread that reads files.
  struct JobUsers {
    std::mutex mutex;  // guards by_job
    std::map<std::uint32_t, uid_t> by_job;
  };

  const NodeSamplerOptions options_;
  const std::vector<evidence::HealthRow> fixed_rows_;
  base::Clock& clock_;
  const std::unique_ptr<spool::SegmentWriter> writer_;
  schedulers::slurm::NodeObserver observer_;
  Sampler sampler_;
  const std::shared_ptr<JobUsers> users_ = std::make_shared<JobUsers>();
  std::unique_ptr<schedulers::slurm::JobFiles> files_;  // null: nothing is assigned here
  std::set<std::string> followed_;                      // identities of the jobs that run
  base::MonoTime next_health_{};
  base::MonoTime busy_at_{};
};

}  // namespace expanse::daemon
