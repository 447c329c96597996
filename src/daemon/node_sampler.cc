#include "daemon/node_sampler.h"

#include <utility>

#include "daemon/step_pacer.h"

namespace expanse::daemon {

base::Result<std::unique_ptr<NodeSampler>> NodeSampler::Create(
    NodeSamplerOptions options, std::vector<SamplerSource> sources,
    std::vector<evidence::HealthRow> fixed_rows, FileIo& files, base::Clock& clock) {
  EXPANSE_ASSIGN_OR_RETURN(auto writer, spool::SegmentWriter::Create(options.writer, files, clock));
  return std::unique_ptr<NodeSampler>(new NodeSampler(
      std::move(options), std::move(sources), std::move(fixed_rows), std::move(writer), clock));
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
  rows.insert(rows.end(), fixed_rows_.begin(), fixed_rows_.end());
  writer_->SetStatus(std::move(rows));
}

bool NodeSampler::Step() {
  const collect::Tick tick{.wall = clock_.Now(), .mono = clock_.Mono()};
  observer_.Observe(tick, *writer_);
  sampler_.Step(tick, observer_.running());
  PostHealth(tick);
  writer_->Step(tick);
  if (observer_.busy()) busy_at_ = tick.mono;
  return options_.end_when_idle_for.count() == 0 ||
         tick.mono - busy_at_ < options_.end_when_idle_for;
}

bool NodeSampler::Stop() {
  const collect::Tick tick{.wall = clock_.Now(), .mono = clock_.Mono()};
  observer_.Observe(tick, *writer_);
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
