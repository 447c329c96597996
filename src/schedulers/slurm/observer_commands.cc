// SlurmObserver: what is due is given to the lanes.
#include <algorithm>
#include <utility>

#include "base/files.h"
#include "schedulers/slurm/cluster_task.h"
#include "schedulers/slurm/observer.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

// The budget bounds what look-ups cost; this, how many small ones it comes to.
constexpr auto kLookUpEvery = 500ms;
constexpr std::size_t kMaxLookUps = 64;
// Where each id takes a run of its own.
constexpr std::size_t kMaxSingleLookUps = 8;
constexpr std::uint64_t kManyJobs = 2'000;
constexpr auto kAccountingLookUpEvery = 10s;
constexpr auto kAccountingLookUpLatest = 5min;  // then also where it cannot be afforded
constexpr std::size_t kMaxAccountingLookUps = 200;
constexpr std::chrono::seconds kReachBackMost = 24h;
constexpr auto kClaimEvery = 30s;
constexpr std::chrono::seconds kStateEvery = 30s;
constexpr std::size_t kStateBytesPerSecond = 64U << 10;  // a large state is written less often

std::int64_t Seconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

}  // namespace

void SlurmObserver::StartCommands(const collect::Tick& tick) {
  if (config_schedule_.Due(tick.mono) &&
      controller_lane_->Post([runner = runner_, mailbox = mailbox_](std::stop_token stop) {
        RunConfigTask(*runner, *mailbox, stop);
      })) {
    config_schedule_.Started(tick.mono);
  }
  if (!config_ || !table_) return;
  StartListing(tick);
  StartLookUp(tick);
  if (nodes_schedule_.Due(tick.mono) &&
      controller_lane_->Post(
          [runner = runner_, mailbox = mailbox_, &clock = clock_](std::stop_token stop) {
            RunNodesTask(*runner, clock, *mailbox, stop);
          })) {
    nodes_schedule_.Started(tick.mono);
  }
  if (partitions_schedule_.Due(tick.mono) &&
      controller_lane_->Post(
          [runner = runner_, mailbox = mailbox_, &clock = clock_](std::stop_token stop) {
            RunPartitionsTask(*runner, clock, *mailbox, stop);
          })) {
    partitions_schedule_.Started(tick.mono);
  }
  if (!has_accounting_) return;
  StartAccounting(tick);
  StartAccountingLookUp(tick);
}

void SlurmObserver::StartListing(const collect::Tick& tick) {
  // Rows of the last listing that are not taken yet would only be joined by more of them.
  if (!queue_schedule_.Due(tick.mono) || mailbox_->bytes() > options_.mailbox_bytes / 2) return;
  QueueTask task{.version = ParseVersion(config_->version),
                 .job_ids = {},
                 .deadline = options_.command_deadline,
                 .many_jobs = kManyJobs};
  if (controller_lane_->Post(
          [task, runner = runner_, state = queue_state_, mailbox = mailbox_](std::stop_token stop) {
            RunQueueTask(task, *runner, *state, *mailbox, std::move(stop));
          })) {
    queue_schedule_.Started(tick.mono);
  }
}

void SlurmObserver::StartLookUp(const collect::Tick& tick) {
  if (lookup_runs_ || queue_schedule_.running() || tick.mono < next_lookup_ ||
      !keeper_->WantsLookUps(tick.mono) || !ledger_->Affords(CommandKind::kLookup, tick.mono)) {
    return;
  }
  const bool one_by_one = last_listing_.rows > kManyJobs;
  QueueTask task{
      .version = ParseVersion(config_->version),
      .job_ids = keeper_->TakeLookUps(one_by_one ? kMaxSingleLookUps : kMaxLookUps, tick.mono),
      .deadline = options_.command_deadline,
      .many_jobs = kManyJobs};
  if (task.job_ids.empty()) return;
  next_lookup_ = tick.mono + kLookUpEvery;
  lookup_runs_ =
      controller_lane_->Post([task = std::move(task), runner = runner_, state = queue_state_,
                              mailbox = mailbox_](std::stop_token stop) {
        RunQueueTask(task, *runner, *state, *mailbox, std::move(stop));
      });
}

SacctWindow SlurmObserver::NextWindow(const collect::Tick& tick) {
  const std::int64_t now_s = Seconds(tick.wall);
  std::int64_t& cursor = table_->marks.accounting_cursor_s;
  if (cursor == 0 || cursor > now_s) cursor = now_s - options_.first_window.count();
  std::int64_t from = cursor - options_.overlap.count();
  reached_back_ = !reach_back_at_.empty() && tick.mono >= reach_back_at_.front();
  if (reached_back_)
    from = std::min(from, std::max(outage_since_s_, now_s - kReachBackMost.count()));
  const std::int64_t to = std::min(now_s, cursor + window_.count());
  return {.from = base::WallTime(std::chrono::seconds(from)),
          .to = base::WallTime(std::chrono::seconds(to))};
}

void SlurmObserver::StartAccounting(const collect::Tick& tick) {
  if (!accounting_schedule_.Due(tick.mono)) return;
  AccountingTask task{.cluster = table_->cluster(), .window = NextWindow(tick), .job_ids = {}};
  if (accounting_lane_->Post([task, runner = runner_, state = accounting_state_,
                              mailbox = mailbox_](std::stop_token stop) {
        RunAccountingTask(task, *runner, *state, *mailbox, stop);
      })) {
    accounting_schedule_.Started(tick.mono);
  }
}

void SlurmObserver::StartAccountingLookUp(const collect::Tick& tick) {
  if (accounting_lookup_runs_ || tick.mono < next_accounting_lookup_) return;
  next_accounting_lookup_ = tick.mono + kAccountingLookUpEvery;
  const CommandLedger::Kind& windows = ledger_->of(CommandKind::kAccounting);
  if (windows.failures_in_row > 0 || !keeper_->WantsAccountingLookUps(tick)) return;
  // Where nothing can ever be afforded, too: this is how lost runs come to their ends.
  if (accounting_lookup_latest_ == base::MonoTime{})
    accounting_lookup_latest_ = tick.mono + kAccountingLookUpLatest;
  if (tick.mono < accounting_lookup_latest_ &&
      !ledger_->Affords(CommandKind::kAccountingLookup, tick.mono)) {
    return;
  }
  accounting_lookup_latest_ = tick.mono + kAccountingLookUpLatest;
  AccountingTask task{.cluster = table_->cluster(),
                      .window = {},
                      .job_ids = keeper_->TakeAccountingLookUps(kMaxAccountingLookUps, tick)};
  if (task.job_ids.empty()) return;
  accounting_lookup_runs_ = accounting_lane_->Post(
      [task = std::move(task), runner = runner_, state = accounting_state_, mailbox = mailbox_](
          std::stop_token stop) { RunAccountingTask(task, *runner, *state, *mailbox, stop); });
}

void SlurmObserver::StartScript(const collect::Tick& tick) {
  if (!config_ || !run_files_) return;
  auto task = run_files_->NextScript();
  if (!task) return;
  task->state_save_location = config_->state_save_location;
  task->may_ask = ledger_->Affords(CommandKind::kScript, tick.mono);
  const bool posted =
      files_lane_->Post([task = *task, runner = runner_, mailbox = mailbox_](std::stop_token stop) {
        RunScriptTask(task, *runner, *mailbox, stop);
      });
  if (!posted) run_files_->TakeScript({});
}

// Another sampler may have to end first, which takes seconds.
void SlurmObserver::StartClaim(const collect::Tick& tick) {
  if (options_.run_directory.empty() || claim_runs_ || tick.mono < next_claim_) return;
  next_claim_ = tick.mono + kClaimEvery;
  if (claim_) {
    claim_status_ = claim_->Renew();
    return;
  }
  claim_runs_ =
      files_lane_->Post([options = NodeClaimOptions{.run_directory = options_.run_directory,
                                                    .version = options_.version,
                                                    .role = NodeRole::kController},
                         &clock = clock_, mailbox = mailbox_](std::stop_token stop) {
        auto claim = NodeClaim::Take(options, clock, std::move(stop));
        ClaimDone done;
        if (claim) {
          done.claim = std::make_shared<NodeClaim>(*std::move(claim));
        } else {
          done.status = std::unexpected(std::move(claim.error()));
        }
        mailbox->PutDone(std::move(done));
      });
}

void SlurmObserver::WriteState(const collect::Tick& tick) {
  // What is not in the outbox yet must not count as told.
  if (!table_ || state_write_runs_ || tick.mono < next_state_ || !outgoing_.empty()) return;
  std::string bytes = table_->Encode();
  state_size_ = bytes.size();
  next_state_ =
      tick.mono + std::max(kStateEvery, std::chrono::seconds(state_size_ / kStateBytesPerSecond));
  state_write_runs_ = files_lane_->Post(
      [bytes = std::move(bytes), path = StatePath(), mailbox = mailbox_](std::stop_token) {
        mailbox->PutDone(StateWritten{.status = base::WriteFileAtomically(path, bytes, 0600),
                                      .bytes = bytes.size()});
      });
}

}  // namespace expanse::schedulers::slurm
