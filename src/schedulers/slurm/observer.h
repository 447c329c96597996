// The controller's role on a Slurm cluster: one daemon sees every job of it. Three sources, none of
// them required: hooks and samplers' reports (prompt), squeue (all jobs, every half a minute),
// sacct (the final truth). Commands run on lanes of their own; Observe only takes what they
// reported, so a slow or hanging Slurm never holds up the samples. What they cost is counted and
// bounded (commands/ledger.h); with 110,000 jobs it is under four commands a minute.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "schedulers/key_resolver.h"
#include "schedulers/observer.h"
#include "schedulers/slurm/accounting_task.h"
#include "schedulers/slurm/commands/ledger.h"
#include "schedulers/slurm/commands/runner.h"
#include "schedulers/slurm/files/assignment_board.h"
#include "schedulers/slurm/files/file_router.h"
#include "schedulers/slurm/files/job_files.h"
#include "schedulers/slurm/job_table.h"
#include "schedulers/slurm/node/hook_directory.h"
#include "schedulers/slurm/node/node_jobs.h"
#include "schedulers/slurm/node_usage.h"
#include "schedulers/slurm/outgoing.h"
#include "schedulers/slurm/queue_task.h"
#include "schedulers/slurm/reports.h"
#include "schedulers/slurm/run_files.h"
#include "schedulers/slurm/run_keeper.h"
#include "schedulers/slurm/work_lane.h"

namespace expanse::schedulers::slurm {

struct SlurmObserverOptions {
  std::string state_directory;  // made 0700
  std::string host;             // this machine's name in Slurm's words
  std::string cluster;          // empty: what slurmctld says
  // This host's hooks and the claim to sample it (node_claim.h); empty: neither, it is sampled.
  std::string run_directory;
  std::string version;             // of the daemon
  std::function<void()> on_claim;  // this host was claimed; on the capture thread
  NodeJobsOptions node;            // this host's own jobs
  JobFilesOptions files;
  // <prefix>/assign: which files samplers are to follow; empty: there are none.
  std::string assign_directory;
  SystemRunnerOptions runner;
  std::chrono::milliseconds queue_interval{30'000};
  std::chrono::milliseconds accounting_interval{60'000};
  std::chrono::milliseconds nodes_interval{120'000};
  std::chrono::milliseconds partitions_interval{600'000};
  std::chrono::milliseconds command_deadline{60'000};
  std::chrono::seconds overlap{300};  // of sacct's windows: records reach slurmdbd late
  // At first start sacct is read from so long ago; what is older is backfill's.
  std::chrono::seconds first_window{600};
  // What a long absence left is read in pieces.
  std::chrono::seconds longest_window{6 * 3600};
  std::size_t mailbox_bytes = 40U << 20;
  std::size_t pending_shown = 1000;  // waiting jobs in the cluster's state, by priority
  LedgerOptions ledger;
  KeeperOptions keeper;
  // Of the clock that passes: the capture thread has samples to take, too.
  std::chrono::milliseconds longest_look{250};
};

// What tests replace; null: the real thing.
struct SlurmObserverParts {
  std::shared_ptr<CommandRunner> runner;
  std::unique_ptr<WorkLane> controller_lane;  // squeue and scontrol
  std::unique_ptr<WorkLane> accounting_lane;  // sacct
  std::unique_ptr<WorkLane> files_lane;       // scripts, the state file
};

// "fir07.example" -> "fir07": Slurm and the system may name one host either way.
inline std::string_view ShortName(std::string_view host) { return host.substr(0, host.find('.')); }

// Not thread-safe; the daemon's capture thread owns it.
class SlurmObserver final : public Observer, public KeyResolver {
 public:
  SlurmObserver(SlurmObserverOptions options, base::Clock& clock, SlurmObserverParts parts = {});
  ~SlurmObserver() override;

  std::string_view name() const override { return "slurm"; }
  // Fails when Slurm's programs are not there, or the state directory cannot be made. A slurmctld
  // that does not answer is no failure here: health says so.
  base::Status Start() override;
  void Observe(const collect::Tick& tick, EvidenceSink& sink) override;
  const std::vector<collect::TrackedWorkload>& running() const override { return running_; }
  std::vector<evidence::HealthRow> health() const override;
  std::optional<ClusterState> TakeClusterState() override;
  // Remembers what was told; commands that run are ended.
  void Stop() override;

  KeyResolver* key_resolver() override { return this; }
  std::optional<evidence::ExecutionKey> Resolve(const evidence::ExecutionKey& local,
                                                base::WallTime at, std::string_view host) override;
  bool IsNodeOf(std::string_view node, std::string_view host) const override;
  bool OnLifecycle(const evidence::ExecutionObservation& seen, std::string_view host,
                   base::WallTime at) override;
  bool FlushReports(EvidenceSink& sink, base::WallTime at) override;
  void OnSampler(std::string_view host, base::WallTime at, bool reads_files) override;
  std::vector<std::string> BusyHosts() const override { return places_.busy_hosts; }

 private:
  // A report of a node about a job that the table does not know yet.
  struct StrayUsage {
    evidence::ExecutionObservation seen;
    std::string host;
    base::WallTime at{};
  };

  void UseCluster(const std::string& cluster);
  // observer_reports.cc: what the lanes put into the mailbox.
  void TakeReports(const collect::Tick& tick, EvidenceSink& sink);
  void Take(RowBatch&& batch, const collect::Tick& tick);
  void Take(QueueDone&& done, const collect::Tick& tick);
  void Take(AccountingRuns&& runs, const collect::Tick& tick);
  void Take(AccountingDone&& done, const collect::Tick& tick);
  void Take(ConfigDone&& done, const collect::Tick& tick);
  void Take(NodesDone&& done, const collect::Tick& tick);
  void Take(PartitionsDone&& done, const collect::Tick& tick);
  void Take(ScriptDone&& done, const collect::Tick& tick);
  void Take(StateWritten&& done, const collect::Tick& tick);
  void Take(ClaimDone&& done, const collect::Tick& tick);
  void NoteUnparsed(std::uint64_t rows, const collect::Tick& tick);
  void BuildClusterState(const collect::Tick& tick);
  void LookAtPlaces(const collect::Tick& tick);
  RunKeeper::Followers MakeFollowers();
  // observer_commands.cc: what is due is given to the lanes.
  void StartCommands(const collect::Tick& tick);
  void StartListing(const collect::Tick& tick);
  void StartLookUp(const collect::Tick& tick);
  void StartAccounting(const collect::Tick& tick);
  void StartAccountingLookUp(const collect::Tick& tick);
  void StartScript(const collect::Tick& tick);
  void StartClaim(const collect::Tick& tick);
  SacctWindow NextWindow(const collect::Tick& tick);
  bool AdaptWindow(const AccountingDone& done, const collect::Tick& tick);
  void WriteState(const collect::Tick& tick);
  std::string StatePath() const;
  // observer_health.cc
  evidence::HealthRow HooksRow() const;
  evidence::HealthRow SamplersRow() const;
  // observer_nodes.cc: what nodes report, here and elsewhere.
  bool SamplesThisHost() const { return options_.run_directory.empty() || claim_ != nullptr; }
  void TakeHooks(const collect::Tick& tick);
  void TakeOwnJobs(const collect::Tick& tick);
  std::optional<RunId> ResolveRun(const LocalJob& job, base::WallTime at);
  // Whether a job that `node` has is another cluster's, although it has the raw id of `run`.
  bool IsForeign(std::string_view node, const TrackedRun* run) const;
  void NoteHeard(std::string_view host, base::WallTime at);
  // Whether `host` may tell of a run: it is on one of its nodes, or nobody knows which those are.
  bool RunsOn(const TrackedRun& run, std::string_view host) const;
  bool TakeUsage(const evidence::ExecutionObservation& seen, std::string_view host,
                 base::WallTime at);
  void TakeStrays(const collect::Tick& tick);
  base::Status StartFiles();
  void UpdateReaders(base::WallTime now);
  std::string ReaderOf(std::string_view node) const;

  const SlurmObserverOptions options_;
  base::Clock& clock_;
  std::shared_ptr<CommandRunner> runner_;
  std::unique_ptr<WorkLane> controller_lane_;
  std::unique_ptr<WorkLane> accounting_lane_;
  std::unique_ptr<WorkLane> files_lane_;
  std::shared_ptr<Mailbox> mailbox_;

  std::unique_ptr<JobTable> table_;  // null until the cluster's name is known
  std::unique_ptr<RunKeeper> keeper_;
  Outgoing outgoing_;
  NodeUsage node_usage_;
  std::shared_ptr<NodeClaim> claim_;
  base::Status claim_status_;
  bool claim_runs_ = false;
  base::MonoTime next_claim_{};
  std::optional<HookDirectory> hooks_;
  base::Status hooks_looked_;
  NodeJobs node_jobs_;
  std::unique_ptr<JobFiles> files_;
  std::unique_ptr<AssignmentBoard> board_;  // null: no samplers
  std::optional<FileRouter> router_;
  std::optional<RunFiles> run_files_;
  // Samplers that may follow files, as their directories are called: when they were last heard.
  std::map<std::string, base::WallTime, std::less<>> readers_;
  std::map<std::string, std::string, std::less<>> reader_of_;  // those that live, by short host
  std::deque<StrayUsage> strays_;
  std::shared_ptr<QueueState> queue_state_;
  std::shared_ptr<AccountingState> accounting_state_;
  std::optional<SlurmConfig> config_;
  std::string state_bytes_;  // of the last life, until the cluster's name is known

  std::optional<CommandLedger> ledger_;
  CommandSchedule queue_schedule_;
  CommandSchedule accounting_schedule_;
  CommandSchedule nodes_schedule_;
  CommandSchedule partitions_schedule_;
  CommandSchedule config_schedule_;
  bool lookup_runs_ = false;
  bool accounting_lookup_runs_ = false;
  bool state_write_runs_ = false;
  bool has_accounting_ = true;
  base::MonoTime next_lookup_{};
  base::MonoTime next_accounting_lookup_{};
  base::MonoTime accounting_lookup_latest_{};
  base::MonoTime next_sweep_{};
  base::MonoTime next_state_{};
  std::size_t state_size_ = 0;
  // After an outage of slurmdbd records of that time arrive late: windows reach back to its
  // beginning at these moments once more.
  std::int64_t outage_since_s_ = 0;
  std::chrono::seconds window_;  // of sacct: shorter while longer ones fail
  bool reached_back_ = false;    // the window that runs now does
  bool outage_ = false;          // slurmdbd is away
  std::deque<base::MonoTime> reach_back_at_;

  std::vector<evidence::ClusterNode> nodes_;
  std::map<std::string, std::string, std::less<>> hosts_;
  std::vector<evidence::ClusterPartition> partitions_;
  std::optional<base::WallTime> nodes_at_;
  std::optional<base::WallTime> partitions_at_;
  std::optional<ClusterState> cluster_state_;

  std::vector<collect::TrackedWorkload> running_;
  // Where jobs run, as of the last listing.
  struct Places {
    std::size_t nodes_with_jobs = 0;
    std::size_t without_sampler = 0;
    std::string example;                  // of a node without one
    std::size_t here = 0;                 // runs on this host, for a while
    std::vector<std::string> busy_hosts;  // others with runs, for a while
  };
  Places places_;
  // Samplers, by short host.
  struct Heard {
    base::WallTime at{};
    std::string host;  // as its directory is spelled
  };
  std::map<std::string, Heard, std::less<>> heard_;
  std::uint64_t forged_ = 0;                     // reports that no sampler of ours makes
  std::optional<base::MonoTime> unfound_since_;  // runs are here by Slurm, and no cgroup of any
  std::size_t unresolved_ = 0;                   // jobs of this host that the table does not know
  std::size_t foreign_ = 0;                      // jobs of this host that another cluster runs
  collect::Tick last_tick_{};
  QueueDone last_listing_;
  std::uint64_t unparsed_ = 0;
  std::optional<base::MonoTime> unparsed_at_;
  base::RateLimit log_limit_{std::chrono::seconds(60)};
};

}  // namespace expanse::schedulers::slurm
