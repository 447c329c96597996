// SlurmObserver: its health, a row for each source.
#include <fmt/format.h>

#include "base/text.h"
#include "schedulers/slurm/node/node_health.h"
#include "schedulers/slurm/observer.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using evidence::HealthRow;
using evidence::HealthStatus;

// Jobs that started one after the other without a hook's word.
constexpr std::uint64_t kStartsWithout = 10;
constexpr auto kUnfoundFor = 1min;
constexpr auto kUnparsedFor = 1h;

double Milliseconds(std::chrono::microseconds time) {
  return static_cast<double>(time.count()) / 1000.0;
}

HealthRow MakeRow(std::string name, base::WallTime at) {
  return {.collector = std::move(name),
          .status = HealthStatus::kOk,
          .reason = {},
          .message = {},
          .checked_at = at,
          .figures = {}};
}

void Degrade(HealthRow& row, HealthStatus status, std::string_view reason, std::string message) {
  row.status = status;
  row.reason = reason;
  row.message = std::move(message);
}

// The word of an error without the scheduler's name: "slurm.timeout" -> "timeout".
std::string_view Word(const base::Error& error) {
  const std::string_view reason = error.reason;
  return reason.starts_with("slurm.") ? reason.substr(6) : reason;
}

// Age, latency and failures of one kind of command; failed when it has not worked for
// `failed_after`.
HealthRow CommandRow(std::string name, const CommandLedger::Kind& kind, base::Duration failed_after,
                     const collect::Tick& tick) {
  HealthRow row = MakeRow(std::move(name), tick.wall);
  row.figures = {{"runs", static_cast<double>(kind.runs)},
                 {"failures", static_cast<double>(kind.failures)},
                 {"latency_ms", Milliseconds(kind.last_cost.wall)}};
  if (kind.succeeded_at) row.figures["age_s"] = base::ToSeconds(tick.mono - *kind.succeeded_at);
  if (kind.failures_in_row == 0) return row;
  const bool is_long = !kind.succeeded_at || tick.mono - *kind.succeeded_at > failed_after;
  Degrade(row, is_long ? HealthStatus::kFailed : HealthStatus::kDegraded, Word(kind.error),
          kind.error.message);
  return row;
}

}  // namespace

// Of all nodes: this host's directory of events, and what samplers pass on.
HealthRow SlurmObserver::HooksRow() const {
  HealthRow row = hooks_ ? HooksHealth(*hooks_, hooks_looked_, last_tick_.wall)
                         : MakeRow("slurm_hooks", last_tick_.wall);
  if (!claim_status_ && row.status == HealthStatus::kOk)
    Degrade(row, HealthStatus::kDegraded, "not_claimed", claim_status_.error().message);
  if (!keeper_) return row;
  const RunKeeper::Figures& figures = keeper_->figures();
  row.figures["events"] = static_cast<double>(figures.hints);
  row.figures["starts_without"] = static_cast<double>(figures.starts_without_hint);
  if (figures.hints > 0)
    row.figures["age_s"] = base::ToSeconds(last_tick_.wall - figures.last_hint);
  if (row.status == HealthStatus::kOk && figures.starts_without_hint >= kStartsWithout) {
    Degrade(row, HealthStatus::kDegraded, "no_events",
            fmt::format("no hook told of the last {} jobs that started; jobs are seen only every "
                        "{:.0f} s (are Prolog and Epilog set in slurm.conf?)",
                        figures.starts_without_hint, base::ToSeconds(options_.queue_interval)));
  }
  return row;
}

HealthRow SlurmObserver::SamplersRow() const {
  HealthRow row = MakeRow("slurm_samplers", last_tick_.wall);
  row.figures = {{"nodes_with_jobs", static_cast<double>(places_.nodes_with_jobs)},
                 {"without_sampler", static_cast<double>(places_.without_sampler)},
                 {"stray_reports", static_cast<double>(strays_.size())},
                 {"forged_reports", static_cast<double>(forged_)}};
  if (places_.without_sampler > 0) {
    Degrade(row, HealthStatus::kDegraded, "without_sampler",
            fmt::format("{} of {} nodes with jobs have no sampler that reports, {} for one",
                        places_.without_sampler, places_.nodes_with_jobs,
                        base::EscapeForDisplay(places_.example)));
  }
  return row;
}

std::vector<HealthRow> SlurmObserver::health() const {
  std::vector<HealthRow> rows;
  if (!ledger_) return rows;
  const collect::Tick& tick = last_tick_;
  const auto& config = ledger_->of(CommandKind::kConfig);

  HealthRow queue = CommandRow("slurm_squeue", ledger_->of(CommandKind::kQueue),
                               4 * options_.queue_interval, tick);
  if (!config_ && config.failures_in_row > 0)
    Degrade(queue, HealthStatus::kFailed, Word(config.error), config.error.message);
  // Where all that was listed had ended, there is nothing to wonder about.
  const bool had_jobs = keeper_ && keeper_->figures().queued + keeper_->figures().running > 0;
  if (queue.status == HealthStatus::kOk && last_listing_.unbelieved && had_jobs) {
    Degrade(queue, HealthStatus::kDegraded, "empty",
            "squeue lists no job although there were some a moment ago; it is asked again");
  }
  if (queue.status == HealthStatus::kOk && unparsed_at_ &&
      tick.mono - *unparsed_at_ < kUnparsedFor) {
    Degrade(queue, HealthStatus::kDegraded, "unparsed",
            fmt::format("{} rows of squeue or sacct were not understood", unparsed_));
  }
  queue.figures["rows"] = static_cast<double>(last_listing_.rows);
  queue.figures["unparsed"] = static_cast<double>(unparsed_);
  queue.figures["not_taken"] = static_cast<double>(last_listing_.not_taken);
  rows.push_back(std::move(queue));

  HealthRow accounting = CommandRow("slurm_sacct", ledger_->of(CommandKind::kAccounting),
                                    10 * options_.accounting_interval, tick);
  if (!has_accounting_) {
    Degrade(accounting, HealthStatus::kDisabled, "no_accounting",
            "the cluster keeps no accounting: what squeue tells of a job's end is all there is");
  }
  if (keeper_) {
    accounting.figures["awaiting_final"] = static_cast<double>(keeper_->figures().awaiting_final);
    accounting.figures["finals"] = static_cast<double>(keeper_->figures().finals);
  }
  if (table_ && table_->marks.accounting_cursor_s != 0) {
    const auto cursor = base::WallTime(std::chrono::seconds(table_->marks.accounting_cursor_s));
    accounting.figures["behind_s"] = base::ToSeconds(tick.wall - cursor);
  }
  rows.push_back(std::move(accounting));
  rows.push_back(CommandRow("slurm_nodes", ledger_->of(CommandKind::kNodes),
                            4 * options_.nodes_interval, tick));
  rows.back().figures["nodes"] = static_cast<double>(nodes_.size());

  HealthRow cost = MakeRow("slurm_cost", tick.wall);
  cost.figures = {{"commands_per_minute", ledger_->RunsPerMinute(tick.mono)},
                  {"served_share", ledger_->ServedShare(tick.mono)},
                  {"served_s", base::ToSeconds(ledger_->served())},
                  {"commands", static_cast<double>(ledger_->runs())},
                  {"queue_interval_s", base::ToSeconds(queue_schedule_.interval())}};
  if (queue_schedule_.interval() > options_.queue_interval &&
      ledger_->of(CommandKind::kQueue).failures_in_row == 0) {
    Degrade(cost, HealthStatus::kDegraded, "backed_off",
            fmt::format("squeue takes {:.1f} s, so it is asked every {:.0f} s only",
                        Milliseconds(ledger_->of(CommandKind::kQueue).last_cost.wall) / 1000.0,
                        base::ToSeconds(queue_schedule_.interval())));
  }
  rows.push_back(std::move(cost));

  rows.push_back(HooksRow());
  rows.push_back(SamplersRow());
  if (files_) rows.push_back(files_->health());
  if (board_) rows.push_back(board_->health());

  HealthRow jobs = JobsHealth(node_jobs_, tick.wall);
  if (jobs.status != HealthStatus::kFailed && unfound_since_ &&
      tick.mono - *unfound_since_ > kUnfoundFor) {
    Degrade(jobs, HealthStatus::kFailed, "no_cgroups",
            fmt::format("{} jobs run on this host by Slurm's word and no cgroup of one was found; "
                        "is ProctrackType or TaskPlugin another than cgroup?",
                        places_.here));
  }
  jobs.figures["running_here"] = static_cast<double>(places_.here);
  jobs.figures["unresolved"] = static_cast<double>(unresolved_);
  jobs.figures["foreign"] = static_cast<double>(foreign_);
  if (keeper_) {
    const RunKeeper::Figures& figures = keeper_->figures();
    jobs.figures["queued"] = static_cast<double>(figures.queued);
    jobs.figures["running"] = static_cast<double>(figures.running);
    jobs.figures["lost"] = static_cast<double>(figures.lost);
    jobs.figures["guessed_ends"] = static_cast<double>(figures.guessed);
  }
  if (!outgoing_.empty()) {
    Degrade(jobs, HealthStatus::kDegraded, "outbox_refuses",
            fmt::format("{} records wait because the outbox does not take them: {}",
                        outgoing_.size(), outgoing_.error().message));
  }
  rows.push_back(std::move(jobs));
  return rows;
}

}  // namespace expanse::schedulers::slurm
