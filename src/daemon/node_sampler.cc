#include "daemon/node_sampler.h"

#include <iterator>
#include <optional>
#include <utility>

#include "daemon/step_pacer.h"
#include "schedulers/slurm/node/node_report.h"

namespace expanse::daemon {
namespace {

constexpr std::size_t kFilesPerStep = 32;  // payloads of the reader of files

}  // namespace

base::Result<std::unique_ptr<NodeSampler>> NodeSampler::Create(
    NodeSamplerOptions options, std::vector<SamplerSource> sources,
    std::vector<evidence::HealthRow> fixed_rows, FileIo& files, base::Clock& clock) {
  EXPANSE_ASSIGN_OR_RETURN(auto writer, spool::SegmentWriter::Create(options.writer, files, clock));
  auto sampler = std::unique_ptr<NodeSampler>(new NodeSampler(
      std::move(options), std::move(sources), std::move(fixed_rows), std::move(writer), clock));
  EXPANSE_RETURN_IF_ERROR(sampler->StartFiles());
  return sampler;
}

base::Status NodeSampler::StartFiles() {
  if (options_.files.assignments.directory.empty()) return {};
  schedulers::slurm::JobFilesOptions files = options_.files;
  files.assignments.user_of_job = [users = users_](std::uint32_t id) -> std::optional<uid_t> {
    const std::scoped_lock lock(users->mutex);
    const auto found = users->by_job.find(id);
    if (found == users->by_job.end()) return std::nullopt;
    return found->second;
  };
  EXPANSE_ASSIGN_OR_RETURN(files_, schedulers::slurm::JobFiles::Start(std::move(files), clock_));
  return {};
}

void NodeSampler::StepFiles(const collect::Tick& tick) {
  if (!files_) return;
  std::map<std::uint32_t, uid_t> users;
  std::set<std::string> running;
  for (const collect::TrackedWorkload& workload : observer_.running()) {
    running.insert(workload.key.identity);
    const auto job = schedulers::slurm::ParseLocalKey(workload.key);
    if (job && job->job_id != 0 && workload.uid != 0) users.emplace(job->job_id, workload.uid);
  }
  {
    const std::scoped_lock lock(users_->mutex);
    users_->by_job = std::move(users);
  }
  // Sooner than the controller can tell; where it is refused, the controller's word does.
  for (const std::string& identity : followed_) {
    if (!running.contains(identity)) (void)files_->Ended({evidence::SourceType::kSlurm, identity});
  }
  followed_ = std::move(running);
  std::vector<evidence::Payload> found = files_->Take(kFilesPerStep);
  for (auto payload = found.begin(); payload != found.end(); ++payload) {
    const auto taken = writer_->Emit(*payload, tick.wall);
    if (taken || taken.error().reason == "spool.record_too_large") continue;
    files_->PutBack({std::make_move_iterator(payload), std::make_move_iterator(found.end())});
    return;
  }
}

NodeSampler::NodeSampler(NodeSamplerOptions options, std::vector<SamplerSource> sources,
                         std::vector<evidence::HealthRow> fixed_rows,
                         std::unique_ptr<spool::SegmentWriter> writer, base::Clock& clock)
    : options_(std::move(options)),
      fixed_rows_(std::move(fixed_rows)),
      clock_(clock),
      writer_(std::move(writer)),
      observer_(options_.observer),
      sampler_(
          options_.sampler, std::move(sources),
          [this](evidence::SampleBatch batch, base::WallTime at) {
            return writer_->EmitSamples(std::move(batch), at);
          },
          clock) {}

void NodeSampler::Start() {
  (void)observer_.Start();
  sampler_.Start();
  next_health_ = busy_at_ = clock_.Mono();
}

void NodeSampler::PostHealth(const collect::Tick& tick) {
  if (tick.mono < next_health_) return;
  next_health_ = tick.mono + options_.health_interval;
  std::vector<evidence::HealthRow> rows = sampler_.health(tick.wall);
  for (evidence::HealthRow& row : observer_.health()) rows.push_back(std::move(row));
  if (files_) rows.push_back(files_->health());
  rows.insert(rows.end(), fixed_rows_.begin(), fixed_rows_.end());
  writer_->SetStatus(std::move(rows));
}

bool NodeSampler::Step() {
  const collect::Tick tick{.wall = clock_.Now(), .mono = clock_.Mono()};
  observer_.Observe(tick, *writer_);
  sampler_.Step(tick, observer_.running());
  StepFiles(tick);
  PostHealth(tick);
  writer_->Step(tick);
  if (observer_.busy()) busy_at_ = tick.mono;
  return options_.end_when_idle_for.count() == 0 ||
         tick.mono - busy_at_ < options_.end_when_idle_for;
}

bool NodeSampler::Stop() {
  const collect::Tick tick{.wall = clock_.Now(), .mono = clock_.Mono()};
  observer_.Observe(tick, *writer_);
  StepFiles(tick);
  if (files_) files_->Stop();
  sampler_.Stop();
  observer_.Stop();
  return writer_->Stop(options_.drain_timeout);
}

void NodeSampler::Run(std::stop_token stop, const std::function<void()>& each_step) {
  Start();
  StepPacer pacer(
      {.interval = options_.observe_interval, .directory = options_.observer.hook_directory},
      clock_);
  while (!stop.stop_requested() && Step()) {
    each_step();
    pacer.Wait(stop);
  }
}

}  // namespace expanse::daemon
