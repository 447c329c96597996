// SlurmObserver: what the lanes put into the mailbox.
#include <algorithm>
#include <utility>

#include "schedulers/slurm/cluster_view.h"
#include "schedulers/slurm/observer.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

// When windows of sacct reach back once more after an outage of slurmdbd.
constexpr auto kFirstReachBack = 2min;
constexpr auto kSecondReachBack = 10min;

}  // namespace

void SlurmObserver::TakeReports(const collect::Tick& tick, EvidenceSink& sink) {
  const auto until = std::chrono::steady_clock::now() + options_.longest_look;
  do {
    auto report = mailbox_->Take();
    if (!report) break;
    std::visit([&](auto&& what) { Take(std::forward<decltype(what)>(what), tick); },
               *std::move(report));
    if (outgoing_.is_long() && !outgoing_.Flush(sink, tick.wall)) return;
  } while (std::chrono::steady_clock::now() < until);
  (void)outgoing_.Flush(sink, tick.wall);
}

void SlurmObserver::NoteUnparsed(std::uint64_t rows, const collect::Tick& tick) {
  if (rows == 0) return;
  unparsed_ += rows;
  unparsed_at_ = tick.mono;
}

void SlurmObserver::Take(RowBatch&& batch, const collect::Tick& tick) {
  const QueueNaming naming{.version = config_ ? ParseVersion(config_->version) : std::nullopt,
                           .host_of = [this](std::string_view node) {
                             const auto known = hosts_.find(node);
                             return known == hosts_.end() ? std::string(node) : known->second;
                           }};
  for (const RowBatch::Row& row : batch.rows) {
    auto job = ParseQueueRow(batch.BytesOf(row), table_->cluster(), naming);
    if (!job) {
      NoteUnparsed(1, tick);
      continue;
    }
    keeper_->TakeRow(*std::move(job), row.hash, row.stable_hash, tick);
  }
}

void SlurmObserver::Take(QueueDone&& done, const collect::Tick& tick) {
  const CommandKind kind = done.is_listing ? CommandKind::kQueue : CommandKind::kLookup;
  const bool had_failed = ledger_->of(CommandKind::kQueue).failures_in_row > 0;
  ledger_->Record(kind, done.cost, done.status, tick.mono, done.runs);
  NoteUnparsed(done.malformed, tick);
  if (done.status || !done.is_listing) keeper_->TakeGone(done.gone, tick);
  if (!done.is_listing) {
    lookup_runs_ = false;
    return;
  }
  queue_schedule_.Ended(tick.mono, done.cost.wall, done.status.has_value());
  if (!done.status) {
    if (log_limit_.Allow())
      base::LogWarn("slurm.queue_failed", {{"reason", done.status.error().reason},
                                           {"message", done.status.error().message}});
    return;
  }
  if (done.not_taken > 0) queue_schedule_.Hasten(tick.mono);
  // slurmctld is back, perhaps as another version or with other settings.
  if (had_failed) config_schedule_.Hasten(tick.mono);
  last_listing_ = std::move(done);
  if (last_listing_.unbelieved) return;
  BuildClusterState(tick);
  LookAtPlaces(tick);
}

void SlurmObserver::Take(AccountingRuns&& runs, const collect::Tick& tick) {
  for (Job& job : runs.jobs) {
    if (job.cluster != table_->cluster()) continue;
    keeper_->TakeAccounting(std::move(job), tick);
  }
}

void SlurmObserver::Take(AccountingDone&& done, const collect::Tick& tick) {
  const CommandKind kind =
      done.is_window ? CommandKind::kAccounting : CommandKind::kAccountingLookup;
  ledger_->Record(kind, done.cost, done.status, tick.mono, done.runs);
  NoteUnparsed(done.bad_rows, tick);
  if (!done.status && done.status.error().reason == "slurm.no_accounting") {
    has_accounting_ = false;
    keeper_->SetAccounting(false);
  }
  if (!done.is_window) {
    accounting_lookup_runs_ = false;
    if (done.status) keeper_->AccountingAnswered(done.job_ids, tick);
    return;
  }
  accounting_schedule_.Ended(tick.mono, done.cost.wall, done.status.has_value());
  std::int64_t& cursor = table_->marks.accounting_cursor_s;
  if (!AdaptWindow(done, tick)) return;
  if (!done.status) {
    // What was to be read once more of the last outage is not forgotten over a new one.
    if (!outage_ && reach_back_at_.empty()) outage_since_s_ = cursor - options_.overlap.count();
    outage_ = true;
    return;
  }
  if (reached_back_) reach_back_at_.pop_front();
  if (std::exchange(outage_, false))
    reach_back_at_ = {tick.mono + kFirstReachBack, tick.mono + kSecondReachBack};
  cursor = std::max(cursor, done.read_to_s);
  const auto now = std::chrono::floor<std::chrono::seconds>(tick.wall).time_since_epoch().count();
  // Catching up takes a fifth of slurmdbd's time at most, as an import does.
  if (now - cursor > 2 * options_.overlap.count())
    accounting_schedule_.Hasten(tick.mono + 4 * done.cost.wall);
}

// A window that slurmdbd does not get through in time, or of which there are more records than are
// taken in time, would never be read. False: its length is why it was not.
bool SlurmObserver::AdaptWindow(const AccountingDone& done, const collect::Tick& tick) {
  constexpr std::chrono::seconds kShortest{60};
  constexpr std::chrono::seconds kShort{900};
  if (done.status) {
    window_ = std::min(window_ + window_ / 4, options_.longest_window);
    return true;
  }
  const std::string& reason = done.status.error().reason;
  if (reason != "slurm.timeout" && reason != "slurm.behind") return true;
  const std::int64_t cursor = table_->marks.accounting_cursor_s;
  if (reached_back_ && cursor > outage_since_s_) {
    outage_since_s_ += (cursor - outage_since_s_ + 1) / 2;
    return false;
  }
  window_ = std::max(window_ / 2, kShortest);
  return tick.wall - base::WallTime(std::chrono::seconds(cursor)) < kShort;
}

void SlurmObserver::Take(ConfigDone&& done, const collect::Tick& tick) {
  ledger_->Record(CommandKind::kConfig, done.cost, done.status, tick.mono);
  config_schedule_.Ended(tick.mono, done.cost.wall, done.status.has_value());
  if (!done.status) {
    // Without it nothing begins: asked as often as the queue would be.
    if (!config_) config_schedule_.RetryAfter(tick.mono, options_.queue_interval);
    if (log_limit_.Allow())
      base::LogWarn("slurm.config_failed", {{"reason", done.status.error().reason},
                                            {"message", done.status.error().message}});
    return;
  }
  config_ = std::move(done.config);
  UseCluster(options_.cluster.empty() ? config_->cluster : options_.cluster);
  has_accounting_ = config_->has_accounting();
  keeper_->SetAccounting(has_accounting_);
}

void SlurmObserver::Take(NodesDone&& done, const collect::Tick& tick) {
  ledger_->Record(CommandKind::kNodes, done.cost, done.status, tick.mono);
  nodes_schedule_.Ended(tick.mono, done.cost.wall, done.status.has_value());
  if (!done.status) return;
  nodes_ = std::move(done.nodes);
  hosts_ = std::move(done.hosts);
  nodes_at_ = done.at;
}

void SlurmObserver::Take(PartitionsDone&& done, const collect::Tick& tick) {
  ledger_->Record(CommandKind::kPartitions, done.cost, done.status, tick.mono);
  partitions_schedule_.Ended(tick.mono, done.cost.wall, done.status.has_value());
  if (!done.status) return;
  partitions_ = std::move(done.partitions);
  partitions_at_ = done.at;
}

void SlurmObserver::Take(ScriptDone&& done, const collect::Tick& tick) {
  if (done.cost) ledger_->Record(CommandKind::kScript, *done.cost, done.status, tick.mono);
  run_files_->TakeScript(std::move(done));
  StartScript(tick);  // the next one at once: there may be thousands after a start
}

void SlurmObserver::Take(StateWritten&& done, const collect::Tick&) {
  state_write_runs_ = false;
  if (!done.status && log_limit_.Allow())
    base::LogWarn("slurm.state_not_written", {{"message", done.status.error().message}});
}

void SlurmObserver::Take(ClaimDone&& done, const collect::Tick&) {
  claim_runs_ = false;
  claim_ = std::move(done.claim);
  claim_status_ = std::move(done.status);
  if (claim_ && options_.on_claim) options_.on_claim();
}

void SlurmObserver::BuildClusterState(const collect::Tick& tick) {
  cluster_state_ = MakeClusterState(*table_, {.nodes = nodes_,
                                              .partitions = partitions_,
                                              .nodes_at = nodes_at_,
                                              .partitions_at = partitions_at_,
                                              .queue_at = tick.wall,
                                              .pending_shown = options_.pending_shown});
}

}  // namespace expanse::schedulers::slurm
