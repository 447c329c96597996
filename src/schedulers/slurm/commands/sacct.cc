#include "schedulers/slurm/commands/sacct.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "schedulers/slurm/commands/sacct_run.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

// The submit time of a requeued job is when it was put back, which is about when its run before
// ended: before that where its nodes took long to clean up, after it where somebody requeued a job
// that had ended (Slurm forgets those after MinJobAge, 5 min unless configured).
constexpr auto kRequeuedBefore = 10min;
constexpr auto kRequeuedAfter = 10min;

constexpr std::size_t kMostStepsNamed = 32;

}  // namespace

std::uint32_t RestartCounts::Next(const Job& run) {
  const evidence::Execution& execution = run.execution;
  auto [entry, is_new] = last_.try_emplace(run.job_id);
  Last& last = entry->second;
  std::uint32_t restarts = 0;
  if (is_new) {
    order_.push_back(run.job_id);
    if (order_.size() > most_) {
      last_.erase(order_.front());
      order_.pop_front();
    }
  } else if (run.uid == last.uid && run.submitted.has_value()) {
    const auto gap = *run.submitted - last.ended;
    if (*run.submitted == last.submitted) {
      restarts = last.restarts;  // the same run again
    } else if (*run.submitted > last.submitted && gap > -kRequeuedBefore && gap < kRequeuedAfter) {
      restarts = last.restarts + 1;
    }
  }
  last = {.restarts = restarts,
          .submitted = run.submitted.value_or(base::WallTime{}),
          .ended = execution.ended_at.value_or(base::WallTime{}),
          .uid = run.uid};
  return restarts;
}

SacctReader::SacctReader(SacctFormat format, std::string separator, SacctReaderOptions options,
                         std::function<void(Job)> on_run, RestartCounts* restarts)
    : options_(std::move(options)),
      on_run_(std::move(on_run)),
      restarts_(restarts != nullptr ? *restarts : own_restarts_),
      rows_(std::move(format), std::move(separator),
            [this](const SacctRow& row) { TakeRow(row); }) {}

void SacctReader::TakeRow(const SacctRow& row) {
  const std::string_view id = row[SacctField::kJobIdRaw];
  if (const std::size_t dot = id.find('.'); dot != std::string_view::npos) {
    const auto job_id = base::ParseInt<std::uint32_t>(id.substr(0, dot));
    const bool has_id = dot + 1 < id.size();
    if (!has_id || !job_ || job_id != job_->job_id || row[SacctField::kDbIndex] != db_index_) {
      ++figures_.orphan_steps;
      return;
    }
    return TakeStep(row, id.substr(dot + 1));
  }
  EndJob();
  job_ = JobFromRow(row, options_.cluster);
  if (!job_) {
    ++figures_.bad_rows;
    return;
  }
  db_index_ = row[SacctField::kDbIndex];
  elapsed_s_ = ElapsedSeconds(row);
  job_row_usage_ = SacctUsage::OfJobRow(row);
}

void SacctReader::TakeStep(const SacctRow& row, std::string_view step) {
  evidence::Usage used = usage_.AddStep(row, job_->execution.allocated.memory_bytes);
  if (IsOutOfMemory(row) && out_of_memory_.size() < kMostStepsNamed * 8) {
    if (!out_of_memory_.empty()) out_of_memory_ += ',';
    out_of_memory_ += step;
  }
  // The others are counted in what the job used.
  if (job_->execution.steps.size() >= options_.max_steps) {
    evidence::BoundSteps(&job_->execution.steps, options_.max_steps / 2,
                         &job_->execution.capture_notes);
  }
  job_->execution.steps.push_back(StepFromRow(row, step));
  job_->execution.steps.back().used = std::move(used);
}

void SacctReader::EndJob() {
  if (!job_) return;
  evidence::Execution& execution = job_->execution;
  execution.used = usage_.Total(job_row_usage_);
  const std::uint32_t gpus = execution.allocated.gpu_count.value_or(0);
  std::string suspect;
  if (IsCpuSuspect(execution.used, execution.allocated.cpu_cores, elapsed_s_)) suspect = "cpu";
  if (const auto util = usage_.GpuUtil(gpus)) {
    execution.labels.emplace(kLabelGpuUtil, fmt::format("{:.1f}", *util));
  } else if (usage_.has_gpu_util() && gpus > 0) {
    suspect += suspect.empty() ? "gpu" : ",gpu";
  }
  if (const auto bytes = usage_.gpu_memory_bytes())
    execution.labels.emplace(kLabelGpuMemory, std::to_string(*bytes));
  if (!suspect.empty()) execution.labels.emplace(kLabelSuspectUsage, std::move(suspect));
  if (!out_of_memory_.empty())
    execution.labels.emplace(kLabelStepsOutOfMemory, std::move(out_of_memory_));
  evidence::BoundSteps(&execution.steps, evidence::kMaxSteps, &execution.capture_notes);

  if (!same_id_.empty() &&
      (same_id_.front().job_id != job_->job_id || same_id_.size() >= options_.max_runs)) {
    EndId();
  }
  same_id_.push_back(std::move(*job_));
  job_.reset();
  usage_ = {};
  out_of_memory_.clear();
}

// Runs of one id come newest first.
void SacctReader::EndId() {
  std::ranges::sort(same_id_, {}, &Job::submitted);
  for (Job& run : same_id_) {
    if (!rows_.format().Has(SacctField::kRestarts))
      run.execution.restart_count = restarts_.Next(run);
    ++figures_.runs;
    on_run_(std::move(run));
  }
  same_id_.clear();
}

void SacctReader::Finish(bool whole) {
  if (!rows_.Finish()) {
    figures_.torn = true;
    whole = false;
  }
  if (whole) {
    EndJob();
  } else {
    job_.reset();
    usage_ = {};
    out_of_memory_.clear();
  }
  EndId();
}

SacctFigures SacctReader::figures() const {
  SacctFigures figures = figures_;
  figures.rows = rows_.rows();
  figures.bad_rows += rows_.too_long();
  return figures;
}

}  // namespace expanse::schedulers::slurm
