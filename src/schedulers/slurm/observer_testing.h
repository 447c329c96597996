// An observer on a Slurm and a clock of the test's own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "schedulers/slurm/fake_slurm_testing.h"
#include "schedulers/slurm/node/node_report.h"
#include "schedulers/slurm/observer.h"

namespace expanse::schedulers::slurm {

using namespace std::chrono_literals;
using evidence::ExecutionStatus;
using evidence::HealthStatus;

// What the data plane would have: observations of a run merged.
class MergingSink final : public EvidenceSink {
 public:
  base::Status Emit(evidence::Payload payload, base::WallTime) override {
    if (refuses) return base::Fail(base::Code::kResourceExhausted, "outbox.full", "full");
    if (const auto* seen = std::get_if<evidence::ExecutionObservation>(&payload)) {
      if (seen->execution.status != ExecutionStatus::kUnspecified) ++count;
      auto& known = runs[seen->key.identity];
      known = evidence::Merge(std::move(known), seen->execution);
    }
    return {};
  }
  bool refuses = false;
  std::size_t count = 0;  // of what was told of states; notes on files are told again
  std::map<std::string, evidence::Execution> runs;  // by identity
};

class Observing : public testing::Test {
 protected:
  Observing() {
    options.state_directory = base::JoinPath(directory->path(), "slurm");
    options.host = "head1";
    options.node.root = directory->path();  // no cgroups of jobs
    EXPECT_TRUE(base::MakeDirectories(base::JoinPath(directory->path(), "/sys/fs/cgroup")));
    EXPECT_TRUE(base::MakeDirectories(base::JoinPath(directory->path(), "/proc")));
    EXPECT_TRUE(base::WriteFileAtomically(base::JoinPath(directory->path(), "/proc/mounts"),
                                          "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", 0644));
    options.files.switches = {
        .logs = false, .sources = false, .exclude_accounts = {}, .exclude_users = {}};
    Start();
  }

  void Start() {
    observer = std::make_unique<SlurmObserver>(
        options, clock,
        SlurmObserverParts{.runner = slurm.runner(),
                           .controller_lane = std::make_unique<InlineLane>(),
                           .accounting_lane = std::make_unique<InlineLane>(),
                           .files_lane = std::make_unique<InlineLane>()});
    ASSERT_TRUE(observer->Start());
  }
  void Restart() {
    observer->Stop();
    observer.reset();
    Start();
  }
  // The daemon looks once a second.
  void Pass(std::chrono::seconds time) {
    for (auto left = time; left > 0s; left -= 1s) {
      clock.Advance(1s);
      observer->Observe({.wall = clock.Now(), .mono = clock.Mono()}, sink);
    }
  }
  // A sampler's report of a Prolog or Epilog.
  void Hook(HookKind kind, std::uint32_t job_id, std::string node = "fir07") {
    HookEvent event;
    event.kind = kind;
    event.job_id = job_id;
    event.node = node;
    event.at = clock.Now();
    EXPECT_TRUE(observer->OnLifecycle(MakeReport(event), node, clock.Now()));
  }
  std::int64_t Now() {
    return std::chrono::floor<std::chrono::seconds>(clock.Now()).time_since_epoch().count();
  }
  std::string Identity(std::uint32_t id, std::int64_t submitted) {
    return "aurora/" + std::to_string(id) + "@" + std::to_string(submitted);
  }
  const evidence::Execution& Run(std::uint32_t id, std::int64_t submitted) {
    return sink.runs[Identity(id, submitted)];
  }
  // The only run of a job.
  const evidence::Execution& Run(std::uint32_t id) {
    const std::string begin = "aurora/" + std::to_string(id) + "@";
    const evidence::Execution* found = nullptr;
    for (const auto& [identity, run] : sink.runs) {
      if (!identity.starts_with(begin)) continue;
      EXPECT_EQ(found, nullptr) << "several runs of " << id;
      found = &run;
    }
    static const evidence::Execution kNone;
    return found == nullptr ? kNone : *found;
  }
  evidence::HealthRow Row(std::string_view name) {
    for (evidence::HealthRow& row : observer->health()) {
      if (row.collector == name) return std::move(row);
    }
    ADD_FAILURE() << "no row " << name;
    return {};
  }

  base::Result<base::TempDir> directory = base::TempDir::Create();
  base::FakeClock clock;
  FakeSlurm slurm{clock};
  MergingSink sink;
  SlurmObserverOptions options;
  std::unique_ptr<SlurmObserver> observer;
};

}  // namespace expanse::schedulers::slurm
