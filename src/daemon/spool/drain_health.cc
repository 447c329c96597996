// What SpoolDrain says of itself, of hosts in trouble and of their samplers.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/spool/spool_drain.h"

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;

constexpr auto kHungAfter = 30s;
constexpr auto kTellQuarantineFor = 1h;
constexpr auto kUnknownIsLongAfter = 120s;

// The first trouble counts.
void Degrade(evidence::HealthRow* row, std::string_view reason, std::string message) {
  if (row->status != evidence::HealthStatus::kOk) return;
  row->status = evidence::HealthStatus::kDegraded;
  row->reason = reason;
  row->message = std::move(message);
}

}  // namespace

evidence::HealthRow SpoolDrain::Totals(const collect::Tick& now) const {
  const DrainWorkerFigures worker = worker_->figures();
  evidence::HealthRow row{.collector = "spool",
                          .status = evidence::HealthStatus::kOk,
                          .reason = "",
                          .message = "",
                          .checked_at = now.wall,
                          .figures = {{"hosts", double(worker.hosts)},
                                      {"segments", double(figures_.segments)},
                                      {"records", double(figures_.records)},
                                      {"backlog", double(worker.backlog)},
                                      {"waiting", double(figures_.waiting)},
                                      {"missing", double(figures_.missing)},
                                      {"repeated", double(figures_.repeated)},
                                      {"records_unknown", double(figures_.unknown)},
                                      {"records_refused", double(figures_.refused)},
                                      {"undeletable", double(worker.undeletable)},
                                      {"strange", double(worker.strange)},
                                      {"untrusted", double(worker.untrusted)},
                                      {"read_failures", double(worker.read_failures)},
                                      {"look_ms", worker.look_seconds * 1000}}};
  for (const auto& [reason, count] : worker.quarantined)
    row.figures["quarantined_" + reason] = double(count);
  if (worker.inside_since && now.mono - *worker.inside_since > kHungAfter) {
    Degrade(&row, "spool.hung",
            fmt::format("{} has not answered for {:.0f} s", options_.worker.reader.spool,
                        base::ToSeconds(now.mono - *worker.inside_since)));
  }
  if (!worker.reason.empty()) Degrade(&row, worker.reason, worker.message);
  if (!emit_status_) Degrade(&row, emit_status_.error().reason, emit_status_.error().message);
  if (!save_status_) Degrade(&row, save_status_.error().reason, save_status_.error().message);
  if (worker.undeletable > 0) {
    Degrade(&row, "spool.undeletable",
            fmt::format("{} segments were taken and cannot be deleted", worker.undeletable));
  }
  if (worker.untrusted > 0) {
    Degrade(&row, "spool.untrusted",
            fmt::format("{} directories belong to users that are not trusted, or others may write "
                        "to them",
                        worker.untrusted));
  }
  if (quarantined_at_ && now.mono - *quarantined_at_ < kTellQuarantineFor) {
    Degrade(&row, "spool.quarantined",
            fmt::format("{} segments went to quarantine, the last one of {}", quarantined_,
                        worker.quarantined_last));
  }
  return row;
}

void SpoolDrain::AddHostRows(const collect::Tick& now,
                             std::vector<evidence::HealthRow>* rows) const {
  std::map<std::string, evidence::HealthRow> degraded;
  auto add = [&](const std::string& host, std::string_view reason, std::string message,
                 std::map<std::string, double> figures) {
    const auto [row, fresh] = degraded.try_emplace(host);
    if (!fresh) return;
    row->second = {.collector = "spool/" + host,
                   .status = evidence::HealthStatus::kDegraded,
                   .reason = std::string(reason),
                   .message = std::move(message),
                   .checked_at = now.wall,
                   .figures = std::move(figures)};
  };
  for (const std::string& host : resolver_.BusyHosts()) {
    if (!state_.contains(host)) continue;  // it never had a sampler
    const auto known = hosts_.find(host);
    const base::Duration since =
        now.mono - (known == hosts_.end() ? started_at_ : known->second.heard);
    if (since <= options_.silent_after) continue;
    add(host, "spool.silent",
        fmt::format("jobs run on {}, and its sampler was not heard for {:.0f} s", host,
                    base::ToSeconds(since)),
        {{"silent_s", base::ToSeconds(since)}});
  }
  for (const auto& [name, host] : hosts_) {
    const auto skew = host.clock.skew();
    const auto correction = host.clock.correction();
    if (correction != 0us || (skew && std::chrono::abs(*skew) > HostClock::kThreshold)) {
      const double skew_s = base::ToSeconds(skew.value_or(correction));
      add(name, "spool.clock_skew",
          fmt::format(
              "the clock of {} is {:.1f} s {}; {}", name, std::abs(skew_s),
              skew_s > 0 ? "ahead" : "behind",
              correction == 0us ? "its times are not corrected yet" : "its times are corrected"),
          {{"skew_s", skew_s}, {"correction_s", base::ToSeconds(correction)}});
    }
    const auto longest = std::ranges::min_element(
        host.unknown, {}, [](const auto& unknown) { return unknown.second.since; });
    if (longest != host.unknown.end() && now.mono - longest->second.since > kUnknownIsLongAfter) {
      add(name, "spool.unknown_job",
          fmt::format("{} reports {}, which the scheduler does not know", name, longest->first),
          {{"unknown", double(host.unknown.size())}});
    }
  }
  rows->front().figures["degraded_hosts"] = double(degraded.size());
  std::size_t shown = 0;
  for (auto& [host, row] : degraded) {
    if (shown++ == options_.degraded_hosts_shown) break;
    rows->push_back(std::move(row));
  }
}

std::vector<evidence::HealthRow> SpoolDrain::health(base::WallTime now) const {
  const collect::Tick tick{.wall = now, .mono = clock_.Mono()};
  std::vector<evidence::HealthRow> rows;
  rows.push_back(Totals(tick));
  AddHostRows(tick, &rows);
  std::size_t shown = 0;
  for (const auto& [name, host] : hosts_) {
    for (evidence::HealthRow row : host.rows) {
      if (shown++ == options_.sampler_rows_shown) return rows;
      row.collector = name + "/" + row.collector;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace expanse::daemon::spool
