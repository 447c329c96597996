#include "daemon/sampler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "collect/series.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// A wall clock that moved this far against the monotonic one was set by somebody.
constexpr auto kClockJump = 5s;

double CpuSeconds(clockid_t clock) {
  timespec now{};
  if (::clock_gettime(clock, &now) != 0) return 0;
  return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

// Field 2 of /proc/self/statm is the resident set in pages (proc(5)).
double OwnRssBytes() {
  auto statm = base::ReadFile("/proc/self/statm", 4096);
  if (!statm) return kNan;
  const auto fields = base::SplitSpaces(*statm);
  const auto pages = fields.size() > 1 ? base::ParseInt<std::uint64_t>(fields[1]) : std::nullopt;
  return pages ? double(*pages) * double(::sysconf(_SC_PAGESIZE)) : kNan;
}

}  // namespace

Sampler::Sampler(SamplerOptions options, std::vector<SamplerSource> sources, BatchSink sink,
                 base::Clock& clock)
    : options_(std::move(options)),
      sources_(std::move(sources)),
      sink_(std::move(sink)),
      clock_(clock),
      cpu_series_(collect::MakeSeries("host-daemon-cpu", "daemon", options_.node)),
      memory_series_(collect::MakeSeries("host-daemon-memory", "daemon", options_.node)) {}

void Sampler::Start() {
  for (SamplerSource& source : sources_) {
    if (source.collector->Start()) continue;
    const evidence::HealthRow row = source.collector->health();
    base::LogInfo("collector.not_started", {{"collector", source.collector->name()},
                                            {"reason", row.reason},
                                            {"message", row.message}});
  }
  next_full_ = next_young_ = clock_.Mono();
}

void Sampler::Stop() {
  Flush();
  for (SamplerSource& source : sources_) source.collector->Stop();
}

Sampler::Scope* Sampler::FindScope(const collect::TrackedWorkload* workload) {
  name_buffer_.clear();
  if (workload != nullptr) {
    name_buffer_ += evidence::Name(workload->key.source_type);
    name_buffer_ += '/';
    name_buffer_ += workload->key.identity;
  }
  const auto found = scopes_.find(name_buffer_);
  return found == scopes_.end() ? nullptr : &found->second;
}

Sampler::Scope* Sampler::FindOrMakeScope(const collect::TrackedWorkload* workload) {
  if (Scope* scope = FindScope(workload)) return scope;
  if (scopes_.size() >= options_.max_scopes) return nullptr;
  Scope& scope = scopes_[name_buffer_];
  if (workload != nullptr) scope.key = workload->key;
  scope.alive = alive_;
  return &scope;
}

void Sampler::Add(const collect::TrackedWorkload* workload, const evidence::SeriesColumn& series,
                  double value) {
  // The compute's own series keep to the full rounds.
  if (young_round_ && workload == nullptr) return;
  Scope* scope = FindOrMakeScope(workload);
  if (scope == nullptr) {
    ++points_dropped_;
    return;
  }
  if (scope->times.empty() || scope->times.back() != tick_.wall) {
    if (scope->times.empty()) scope->since = tick_.mono;
    scope->times.push_back(tick_.wall);
  }
  std::string& identity = identity_buffer_;
  identity.clear();
  const bool elsewhere = workload != nullptr && !workload->node.empty();
  const std::string& node = elsewhere ? workload->node : series.node;
  for (const std::string* part : {&series.metric, &series.source, &node, &series.gpu_uuid}) {
    identity += *part;
    identity += '\0';
  }
  if (series.gpu_index) identity += std::to_string(*series.gpu_index);
  auto found = scope->index.find(identity);
  if (found == scope->index.end()) {
    if (scope->columns.size() >= options_.max_columns) {
      ++points_dropped_;
      return;
    }
    found = scope->index.emplace(identity, scope->columns.size()).first;
    scope->columns.push_back({.series = series});
    scope->columns.back().series.node = node;
    scope->columns.back().series.values.clear();
  }
  Column& column = scope->columns[found->second];
  column.used = true;
  column.series.attribution = series.attribution;
  column.series.values.resize(scope->times.size(), kNan);
  column.series.values.back() = value;
  ++scope->points;
  ++points_;
}

void Sampler::Round(const collect::Tick& tick,
                    const std::vector<collect::TrackedWorkload>& workloads, bool young) {
  const double before = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  tick_ = tick;
  young_round_ = young;
  ++round_;
  for (SamplerSource& source : sources_) {
    if (!young || source.in_young_rounds) source.collector->Collect(tick, workloads, *this);
  }
  young_round_ = false;
  const double cost = (CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - before) * 1e3;
  total_cpu_ms_ += cost;
  ++rounds_;
  if (young) return;
  last_cpu_ms_ = cost;
  AddOwnCost();
}

// What the whole daemon costs, as series of the compute.
void Sampler::AddOwnCost() {
  own_rss_bytes_ = OwnRssBytes();
  if (!std::isnan(own_rss_bytes_)) Add(nullptr, memory_series_, own_rss_bytes_);
  const double cpu_s = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const double passed_s = base::ToSeconds(tick_.mono - own_cpu_at_);
  if (own_cpu_s_ && passed_s > 0) {
    own_cpu_cores_ = (cpu_s - *own_cpu_s_) / passed_s;
    Add(nullptr, cpu_series_, own_cpu_cores_);
  }
  own_cpu_s_ = cpu_s;
  own_cpu_at_ = tick_.mono;
}

void Sampler::Emit(Scope* scope) {
  if (!scope->times.empty()) {
    evidence::SampleBatch batch{.key = scope->key, .times = std::move(scope->times), .columns = {}};
    const std::size_t rows = batch.times.size();
    for (Column& column : scope->columns) {
      if (!column.used) continue;
      column.series.values.resize(rows, kNan);
      batch.columns.push_back(column.series);
      column.series.values.clear();
    }
    if (!batch.columns.empty()) {
      if (auto taken = sink_(std::move(batch), clock_.Now()); !taken) {
        ++batches_refused_;
        last_refusal_ = taken.error().message;
        if (refusal_log_.Allow()) base::LogWarn("sampler.batch_lost", {{"message", last_refusal_}});
      } else {
        last_refusal_.clear();
      }
    }
  }
  // A series that was quiet for a whole batch is forgotten: processes and devices come and go.
  const bool any_quiet = std::any_of(scope->columns.begin(), scope->columns.end(),
                                     [](const Column& column) { return !column.used; });
  if (any_quiet) {
    scope->columns.clear();
    scope->index.clear();
  }
  for (Column& column : scope->columns) column.used = false;
  scope->times.clear();
  scope->points = 0;
}

// True when another set of workloads runs than at the last look; those that run are marked then.
bool Sampler::MarkRunning(const std::vector<collect::TrackedWorkload>& running) {
  std::uint64_t fingerprint = running.size();
  for (const collect::TrackedWorkload& workload : running) {
    fingerprint = fingerprint * 31 + std::hash<std::string>()(workload.key.identity);
  }
  if (fingerprint == fingerprint_) return false;
  fingerprint_ = fingerprint;
  ++alive_;
  for (const collect::TrackedWorkload& workload : running) {
    if (Scope* scope = FindScope(&workload)) scope->alive = alive_;
  }
  return true;
}

// Batches that are old or large enough, and whatever is left of workloads that have ended.
void Sampler::EmitDue(const collect::Tick& tick, bool sweep) {
  for (auto it = scopes_.begin(); it != scopes_.end();) {
    Scope& scope = it->second;
    const bool gone = scope.key && sweep && scope.alive != alive_;
    const bool due = !scope.times.empty() && (tick.mono - scope.since >= options_.flush_interval ||
                                              scope.points >= options_.flush_points);
    if (gone || due) Emit(&scope);
    it = gone ? scopes_.erase(it) : std::next(it);
  }
}

void Sampler::Step(const collect::Tick& tick,
                   const std::vector<collect::TrackedWorkload>& running) {
  // Times within a batch ascend; a clock that was set ends the batches that are open.
  const auto wall_passed = tick.wall - last_step_.wall;
  const auto mono_passed =
      std::chrono::duration_cast<std::chrono::microseconds>(tick.mono - last_step_.mono);
  last_step_ = tick;
  if (round_ > 0 &&
      (wall_passed < 0s || std::chrono::abs(wall_passed - mono_passed) > kClockJump)) {
    base::LogInfo("sampler.clock_jump", {{"by_s", base::ToSeconds(wall_passed - mono_passed)}});
    Flush();
  }
  if (tick.mono >= next_full_) {
    Round(tick, running, /*young=*/false);
    next_full_ += options_.interval;
    // After a suspend the missed rounds are not made up for.
    if (next_full_ <= tick.mono) next_full_ = tick.mono + options_.interval;
    next_young_ = tick.mono + options_.young_interval;
  } else if (tick.mono >= next_young_) {
    std::vector<collect::TrackedWorkload> young;
    for (const collect::TrackedWorkload& workload : running) {
      const auto age = tick.wall - workload.started;
      if (age >= 0s && age < options_.young_for) young.push_back(workload);
    }
    if (!young.empty()) Round(tick, young, /*young=*/true);
    next_young_ = tick.mono + options_.young_interval;
  }
  EmitDue(tick, MarkRunning(running));
}

void Sampler::Flush() {
  for (auto& [name, scope] : scopes_) Emit(&scope);
}

std::vector<evidence::HealthRow> Sampler::health(base::WallTime now) const {
  std::vector<evidence::HealthRow> rows;
  for (const SamplerSource& source : sources_) {
    rows.push_back(source.collector->health());
    if (rows.back().checked_at == base::WallTime{}) rows.back().checked_at = now;
  }
  evidence::HealthRow own{
      .collector = "sampler",
      .status = evidence::HealthStatus::kOk,
      .reason = "",
      .message = "",
      .checked_at = now,
      .figures = {{"tick_cpu_ms", last_cpu_ms_},
                  {"cpu_cores", own_cpu_cores_},
                  {"total_cpu_ms", total_cpu_ms_},
                  {"rounds", double(rounds_)},
                  {"rss_bytes", std::isnan(own_rss_bytes_) ? 0 : own_rss_bytes_},
                  {"points", double(points_)},
                  {"points_dropped", double(points_dropped_)},
                  {"batches_lost", double(batches_refused_)}}};
  if (!last_refusal_.empty()) {
    own.status = evidence::HealthStatus::kDegraded;
    own.reason = "batches_lost";
    own.message = last_refusal_;
  }
  rows.push_back(std::move(own));
  return rows;
}

}  // namespace expanse::daemon
