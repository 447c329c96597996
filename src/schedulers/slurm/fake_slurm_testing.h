// A Slurm for tests of the observer: jobs that start, end and are requeued by the clock of the
// test, told by a FakeRunner in squeue's, sacct's and scontrol's own spelling; slurmctld and
// slurmdbd can be away. Accounting gets a run's record when it ends, or later while slurmdbd is
// away.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/time.h"
#include "schedulers/slurm/commands/fake_runner_testing.h"
#include "schedulers/slurm/commands/sacct_testing.h"
#include "schedulers/slurm/commands/squeue_testing.h"
#include "schedulers/slurm/work_lane.h"

namespace expanse::schedulers::slurm {

// Does at once what it is given.
class InlineLane final : public WorkLane {
 public:
  bool Post(Work work) override {
    work({});
    return true;
  }
  void Stop(std::chrono::milliseconds) override {}
};

class FakeSlurm {
 public:
  explicit FakeSlurm(base::Clock& clock) : clock_(clock), runner_(std::make_shared<FakeRunner>()) {
    runner_->On(Program::kSqueue, [this](const auto& arguments) { return Squeue(arguments); });
    runner_->On(Program::kSacct, [this](const auto& arguments) { return Sacct(arguments); });
    runner_->On(Program::kScontrol, [this](const auto& arguments) { return Scontrol(arguments); });
  }
  FakeSlurm(const FakeSlurm&) = delete;
  FakeSlurm& operator=(const FakeSlurm&) = delete;

  // --- what happens to jobs

  void Submit(std::uint32_t id, QueueValues special = {}) {
    QueueValues job = PendingJob(id);
    job[QueueField::kSubmitTime] = job[QueueField::kEligibleTime] = Now();
    for (auto& [field, value] : special) job[field] = std::move(value);
    jobs_[id] = {.row = std::move(job), .ended_s = 0};
  }
  void Begin(std::uint32_t id, std::string node = "fir07") {
    QueueValues& row = jobs_.at(id).row;
    row[QueueField::kState] = "RUNNING";
    row[QueueField::kReason] = "None";
    row[QueueField::kNodeList] = row[QueueField::kBatchHost] = std::move(node);
    row[QueueField::kStartTime] = Now();
    row[QueueField::kEndTime] = std::to_string(NowS() + 3600);
  }
  // `state` in squeue's long form, `exit_status` as of wait(2).
  void End(std::uint32_t id, const std::string& state = "COMPLETED", int exit_status = 0) {
    Kept& job = jobs_.at(id);
    job.row[QueueField::kState] = state;
    job.row[QueueField::kExitCode] = std::to_string(exit_status);
    job.row[QueueField::kEndTime] = Now();
    job.ended_s = NowS();
    Account(job.row, state, exit_status);
  }
  // The run ends with `state` and the job waits again, under a new submit time.
  void Requeue(std::uint32_t id, const std::string& state) {
    Kept& job = jobs_.at(id);
    Account(job.row, state, 0);
    QueueValues again = PendingJob(id);
    again[QueueField::kSubmitTime] = again[QueueField::kEligibleTime] = Now();
    again[QueueField::kRestartCount] =
        std::to_string(base::ParseInt<int>(job.row[QueueField::kRestartCount]).value_or(0) + 1);
    job.row = std::move(again);
  }
  // slurmctld forgets the job without a trace.
  void Lose(std::uint32_t id) { jobs_.erase(id); }
  QueueValues& row(std::uint32_t id) { return jobs_.at(id).row; }

  // --- what happens to Slurm

  bool slurmctld_is_up = true;
  bool lies_empty = false;  // squeue succeeds and lists nothing
  bool has_accounting = true;
  void SetSlurmdbd(bool is_up) {
    dbd_is_up_ = is_up;
    if (is_up && !holds_) DeliverQueued();
  }
  void HoldAccounting(bool hold) {  // up, but slurmctld has not sent what it has
    holds_ = hold;
    if (!hold && dbd_is_up_) DeliverQueued();
  }
  std::chrono::milliseconds latency{12};
  std::int64_t longest_window_s = 0;  // sacct does not get through a longer one in time; 0: any
  std::int64_t min_job_age_s = 300;

  const std::shared_ptr<FakeRunner>& runner() const { return runner_; }
  // Commands of a program whose arguments hold a text.
  std::size_t Count(Program program, std::string_view argument) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(runner_->commands, [&](const Command& command) {
          return command.program == program &&
                 std::ranges::any_of(command.arguments, [&](const std::string& one) {
                   return one.contains(argument);
                 });
        }));
  }

 private:
  struct Kept {
    QueueValues row;
    std::int64_t ended_s = 0;
  };
  struct Accounted {
    SacctCells cells;
    std::int64_t end_s = 0;
  };

  std::int64_t NowS() {
    return std::chrono::floor<std::chrono::seconds>(clock_.Now()).time_since_epoch().count();
  }
  std::string Now() { return std::to_string(NowS()); }

  void Account(QueueValues& row, const std::string& state, int exit_status) {
    using enum SacctField;
    const std::string& id = row[QueueField::kJobId];
    const bool started = row[QueueField::kStartTime] != "N/A";
    SacctCells cells = JobCells(
        {{kJobIdRaw, id},
         {kJobId, row[QueueField::kJobArrayId]},
         {kDbIndex, std::to_string(++db_index_)},
         {kCluster, "aurora"},
         {kUser, row[QueueField::kUserName]},
         {kUid, row[QueueField::kUserId]},
         {kJobName, row[QueueField::kName]},
         {kState, state},
         {kExitCode, std::to_string(exit_status >> 8) + ":" + std::to_string(exit_status & 127)},
         {kSubmit, row[QueueField::kSubmitTime]},
         {kEligible, row[QueueField::kSubmitTime]},
         {kStart, started ? row[QueueField::kStartTime] : "Unknown"},
         {kEnd, Now()},
         {kRestarts, row[QueueField::kRestartCount]}});
    const Accounted record{.cells = std::move(cells), .end_s = NowS()};
    (dbd_is_up_ && !holds_ ? accounted_ : queued_).push_back(record);
  }
  void DeliverQueued() {
    accounted_.insert(accounted_.end(), queued_.begin(), queued_.end());
    queued_.clear();
  }

  static std::string Value(const std::vector<std::string>& arguments, std::string_view option) {
    for (const std::string& argument : arguments) {
      if (argument.starts_with(option)) return argument.substr(option.size());
    }
    return {};
  }
  static std::set<std::uint32_t> Ids(const std::vector<std::string>& arguments) {
    std::set<std::uint32_t> ids;
    const std::string list = Value(arguments, "--jobs=");
    for (const std::string_view id : base::Split(list, ',')) {
      if (const auto number = base::ParseInt<std::uint32_t>(id)) ids.insert(*number);
    }
    return ids;
  }
  FakeRunner::Answer Reply(std::string out) const {
    return {.out = std::move(out), .status = {}, .cost = {.wall = latency, .cpu = {}}};
  }
  static FakeRunner::Answer Refuse(std::string reason) {
    return {.out = {},
            .status = base::Fail(base::Code::kUnavailable, std::move(reason), "as the test wants"),
            .cost = {}};
  }

  FakeRunner::Answer Squeue(const std::vector<std::string>& arguments) {
    if (!slurmctld_is_up) return Refuse("slurm.unreachable");
    std::erase_if(jobs_, [&](const auto& job) {
      return job.second.ended_s != 0 && NowS() - job.second.ended_s > min_job_age_s;
    });
    if (lies_empty) return Reply("");
    const std::set<std::uint32_t> ids = Ids(arguments);
    if (ids.size() == 1 && !jobs_.contains(*ids.begin())) return Refuse("slurm.job_not_found");
    const std::string separator = QueueSeparatorOf(arguments);
    std::string out;
    for (const auto& [id, job] : jobs_) {
      if (ids.empty() || ids.contains(id)) out += QueueLine(separator, job.row);
    }
    return Reply(std::move(out));
  }

  FakeRunner::Answer Sacct(const std::vector<std::string>& arguments) {
    if (!has_accounting) return Refuse("slurm.no_accounting");
    if (!dbd_is_up_) return Refuse("slurm.unreachable");
    if (std::ranges::find(arguments, "--helpformat") != arguments.end()) {
      std::string fields = SacctFormat::Full().Argument();
      std::ranges::replace(fields, ',', ' ');
      return Reply(std::move(fields));
    }
    const std::set<std::uint32_t> ids = Ids(arguments);
    const auto at = [&](std::string_view option) {
      const auto time = base::ParseRfc3339(Value(arguments, option) + "Z");
      return time ? std::chrono::floor<std::chrono::seconds>(*time).time_since_epoch().count() : 0;
    };
    const std::int64_t from = at("--starttime=");
    const std::int64_t to = at("--endtime=");
    if (ids.empty() && longest_window_s > 0 && to - from > longest_window_s)
      return Refuse("slurm.timeout");
    std::string out;
    for (const Accounted& run : accounted_) {
      const auto id = base::ParseInt<std::uint32_t>(run.cells.at(SacctField::kJobIdRaw));
      if (ids.empty() ? run.end_s < from || run.end_s > to : !ids.contains(id.value_or(0)))
        continue;
      out += SacctLine(SacctFormat::Full(), Value(arguments, "--delimiter="), run.cells);
    }
    return Reply(std::move(out));
  }

  FakeRunner::Answer Scontrol(const std::vector<std::string>& arguments) {
    if (!slurmctld_is_up) return Refuse("slurm.unreachable");
    if (arguments.size() > 1 && arguments[1] == "config") {
      return Reply(std::string("AccountingStorageType   = ") +
                   (has_accounting ? "accounting_storage/slurmdbd" : "accounting_storage/none") +
                   "\nClusterName             = aurora\nMinJobAge               = 300 sec\n"
                   "SLURM_VERSION           = 22.05.8\nStateSaveLocation       = /nowhere\n");
    }
    if (arguments.size() > 1 && arguments[1] == "node") {
      return Reply(
          "NodeName=fir07 Arch=x86_64 CoresPerSocket=4 \n   CPUAlloc=4 CPUEfctv=16 CPUTot=16 "
          "CPULoad=0.50\n   NodeAddr=10.7.0.7 NodeHostName=fir07.example Version=22.05.8\n   "
          "RealMemory=64000 AllocMem=8192 FreeMem=50000 Sockets=4 Boards=1\n   State=MIXED "
          "ThreadsPerCore=1\n   Partitions=long \n\n");
    }
    return Reply(
        "PartitionName=long\n   Default=YES QoS=N/A\n   MaxTime=2-00:00:00 DefaultTime=NONE\n   "
        "State=UP TotalCPUs=16 TotalNodes=1\n\n");
  }

  base::Clock& clock_;
  const std::shared_ptr<FakeRunner> runner_;
  std::map<std::uint32_t, Kept> jobs_;
  std::vector<Accounted> accounted_;
  std::vector<Accounted> queued_;
  std::uint64_t db_index_ = 100;
  bool dbd_is_up_ = true;
  bool holds_ = false;
};

}  // namespace expanse::schedulers::slurm
