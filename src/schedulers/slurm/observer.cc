#include "schedulers/slurm/observer.h"

#include <algorithm>
#include <utility>

#include "base/crypto.h"
#include "base/files.h"
#include "schedulers/slurm/node/hook_script.h"
#include "schedulers/slurm/node/node_report.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr auto kSweepEvery = 5s;
constexpr std::size_t kMaxState = 512U << 20;
// A failing command is tried again after this at the latest.
constexpr auto kQueueMost = 2min;
constexpr auto kMost = 15min;
constexpr auto kConfigEvery = 1h;

std::uint64_t RandomSeed() {
  std::uint64_t seed = 0;
  for (const char byte : base::RandomBytes(8)) seed = seed << 8 | static_cast<unsigned char>(byte);
  return seed;
}

}  // namespace

SlurmObserver::SlurmObserver(SlurmObserverOptions options, base::Clock& clock,
                             SlurmObserverParts parts)
    : options_(std::move(options)),
      clock_(clock),
      runner_(std::move(parts.runner)),
      controller_lane_(std::move(parts.controller_lane)),
      accounting_lane_(std::move(parts.accounting_lane)),
      files_lane_(std::move(parts.files_lane)),
      mailbox_(std::make_shared<Mailbox>(options_.mailbox_bytes)),
      node_jobs_(options_.node),
      queue_state_(std::make_shared<QueueState>()),
      accounting_state_(std::make_shared<AccountingState>()),
      queue_schedule_(options_.queue_interval, kQueueMost),
      accounting_schedule_(options_.accounting_interval, kMost),
      nodes_schedule_(options_.nodes_interval, kMost),
      partitions_schedule_(options_.partitions_interval, kMost),
      config_schedule_(kConfigEvery, kConfigEvery),
      window_(options_.longest_window) {}

SlurmObserver::~SlurmObserver() = default;

std::string SlurmObserver::StatePath() const {
  return base::JoinPath(options_.state_directory, "runs");
}

base::Status SlurmObserver::Start() {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(options_.state_directory, 0700));
  if (!runner_) {
    EXPANSE_ASSIGN_OR_RETURN(SystemCommandRunner runner,
                             SystemCommandRunner::Create(options_.runner));
    runner_ = std::make_shared<SystemCommandRunner>(std::move(runner));
  }
  if (!controller_lane_) controller_lane_ = std::make_unique<ThreadLane>();
  if (!accounting_lane_) accounting_lane_ = std::make_unique<ThreadLane>();
  if (!files_lane_) files_lane_ = std::make_unique<ThreadLane>();
  if (!options_.run_directory.empty() && !hooks_)
    hooks_.emplace(base::JoinPath(options_.run_directory, kHookDirectory),
                   base::JoinPath(options_.state_directory, "hook-quarantine"));
  EXPANSE_RETURN_IF_ERROR(StartFiles());
  ledger_.emplace(options_.ledger, clock_.Mono());
  if (auto state = base::ReadFile(StatePath(), kMaxState)) state_bytes_ = *std::move(state);
  // Samples that wait in the spool belong to jobs even while slurmctld does not answer.
  const std::string cluster =
      options_.cluster.empty() ? JobTable::ClusterOf(state_bytes_) : options_.cluster;
  if (!cluster.empty()) UseCluster(cluster);
  return {};
}

base::Status SlurmObserver::StartFiles() {
  if (run_files_) return {};
  if (!files_) {
    EXPANSE_ASSIGN_OR_RETURN(files_, JobFiles::Start(options_.files, clock_));
  }
  if (!options_.assign_directory.empty()) {
    EXPANSE_ASSIGN_OR_RETURN(
        board_, AssignmentBoard::Start({.directory = options_.assign_directory}, clock_));
  }
  router_.emplace(*files_, board_.get(), options_.files.switches, clock_);
  run_files_.emplace(*files_, *router_, [this](std::string_view node) { return ReaderOf(node); });
  return {};
}

void SlurmObserver::UseCluster(const std::string& cluster) {
  if (table_ && table_->cluster() == cluster) return;
  if (table_) {
    base::LogWarn("slurm.other_cluster", {{"was", table_->cluster()}, {"is", cluster}});
  }
  table_ = std::make_unique<JobTable>(cluster);
  if (!state_bytes_.empty()) {
    if (auto decoded = table_->Decode(state_bytes_); !decoded) {
      base::LogWarn("slurm.state_left_out",
                    {{"reason", decoded.error().reason}, {"message", decoded.error().message}});
    }
    state_bytes_ = {};
  }
  if (table_->marks.hash_seed == 0) table_->marks.hash_seed = RandomSeed();
  auto queue_state = std::make_shared<QueueState>();
  queue_state->hash_seed = table_->marks.hash_seed;
  for (const auto& [id, run] : table_->runs()) {
    if (run.gone_s == 0) queue_state->filter.Expect(id.job_id);
  }
  queue_state_ = std::move(queue_state);
  keeper_ = std::make_unique<RunKeeper>(options_.keeper, *table_, outgoing_, MakeFollowers());
  keeper_->SetAccounting(has_accounting_);
}

RunKeeper::Followers SlurmObserver::MakeFollowers() {
  return {.seen = [this](RunId id, TrackedRun& run,
                         const Job& job) { run_files_->Seen(id, table_->KeyOf(id), run, job); },
          .ended = [this](RunId id) { run_files_->Ended(table_->KeyOf(id)); }};
}

void SlurmObserver::Observe(const collect::Tick& tick, EvidenceSink& sink) {
  last_tick_ = tick;
  // While the outbox takes nothing, nothing new is taken: it waits in the mailbox and in Slurm.
  if (outgoing_.Flush(sink, tick.wall)) TakeReports(tick, sink);
  StartClaim(tick);
  // Before what is newer of the same jobs.
  if (keeper_) TakeStrays(tick);
  if (SamplesThisHost()) {
    TakeHooks(tick);
    TakeOwnJobs(tick);
  }
  if (keeper_) {
    if (outgoing_.empty()) run_files_->Pass(*table_, outgoing_);
    if (tick.mono >= next_sweep_) {
      next_sweep_ = tick.mono + kSweepEvery;
      keeper_->Sweep(tick);
      node_usage_.Forget(tick.wall - 1h);
      UpdateReaders(tick.wall);
    }
    (void)outgoing_.Flush(sink, tick.wall);
  }
  StartCommands(tick);
  StartScript(tick);
  WriteState(tick);
}

std::optional<ClusterState> SlurmObserver::TakeClusterState() {
  return std::exchange(cluster_state_, std::nullopt);
}

void SlurmObserver::Stop() {
  for (auto* lane : {&controller_lane_, &accounting_lane_, &files_lane_}) {
    if (*lane) (*lane)->Stop(5s);
  }
  if (files_) files_->Stop();
  if (board_) board_->Stop();
  claim_.reset();  // the next one may sample this host
  if (!table_ || !outgoing_.empty()) return;
  if (auto written = base::WriteFileAtomically(StatePath(), table_->Encode(), 0600); !written) {
    base::LogWarn("slurm.state_not_written", {{"message", written.error().message}});
  }
}

std::optional<RunId> SlurmObserver::ResolveRun(const LocalJob& job, base::WallTime at) {
  if (!table_) return std::nullopt;
  if (job.job_id == 0) return table_->BySluid(job.sluid);
  const auto id = table_->At(job.job_id, at);
  if (!id) keeper_->WantUnknown(job.job_id, clock_.Mono());
  return id;
}

std::optional<evidence::ExecutionKey> SlurmObserver::Resolve(const evidence::ExecutionKey& local,
                                                             base::WallTime at,
                                                             std::string_view host) {
  const auto job = ParseLocalKey(local);
  const auto id = job ? ResolveRun(*job, at) : std::nullopt;
  const TrackedRun* run = id ? table_->Find(*id) : nullptr;
  if (run == nullptr || !RunsOn(*run, host)) return std::nullopt;
  return table_->KeyOf(*id);
}

// What this host's own cgroups say needs nobody's word.
bool SlurmObserver::RunsOn(const TrackedRun& run, std::string_view host) const {
  if (run.nodes.empty() || hosts_.empty() || host == options_.host) return true;
  return std::ranges::any_of(
      run.nodes, [&](std::uint32_t index) { return IsNodeOf(table_->names()[index], host); });
}

bool SlurmObserver::IsNodeOf(std::string_view node, std::string_view host) const {
  const auto known = hosts_.find(node);
  if (known == hosts_.end()) return node == host;
  return ShortName(known->second) == ShortName(host);
}

}  // namespace expanse::schedulers::slurm
