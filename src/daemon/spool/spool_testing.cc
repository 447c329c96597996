#include "daemon/spool/spool_testing.h"

#include <random>
#include <utility>

namespace expanse::daemon::spool {
namespace {

evidence::ExecutionKey KeyOfJob(const std::string& id) {
  return {.source_type = evidence::SourceType::kSlurm, .identity = "job:" + id};
}

}  // namespace

evidence::Payload EventOfJob(const std::string& id) {
  evidence::ExecutionObservation seen{.key = KeyOfJob(id), .execution = {}};
  seen.execution.source_type = evidence::SourceType::kSlurm;
  seen.execution.status = evidence::ExecutionStatus::kRunning;
  return seen;
}

evidence::SampleBatch SamplesOfJob(const std::string& id, std::size_t points, base::WallTime from) {
  evidence::SampleBatch batch{.key = KeyOfJob(id), .times = {}, .columns = {}};
  evidence::SeriesColumn column{.metric = "cpu", .source = "cgroup", .unit = "cores"};
  for (std::size_t i = 0; i < points; ++i) {
    batch.times.push_back(from + std::chrono::seconds(i));
    column.values.push_back(static_cast<double>(i));
  }
  batch.columns.push_back(std::move(column));
  return batch;
}

evidence::SampleBatch NoiseOfJob(const std::string& id, std::size_t points, base::WallTime from) {
  static std::mt19937_64 random(1);
  evidence::SampleBatch batch = SamplesOfJob(id, points, from);
  for (double& value : batch.columns[0].values)
    value = std::uniform_real_distribution<double>(0, 1)(random);
  return batch;
}

}  // namespace expanse::daemon::spool
