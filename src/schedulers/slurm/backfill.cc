#include "schedulers/slurm/backfill.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

base::Status Stopped() {
  return base::Fail(base::Code::kCancelled, "backfill.stopped", "stopped before the end");
}

// Nothing that waiting or asking for less could change.
bool IsFinal(const base::Error& error) {
  return error.reason == "slurm.no_accounting" || error.reason == "slurm.no_configuration" ||
         error.reason == "slurm.permission" || error.reason == "slurm.sacct_format" ||
         error.reason == "backfill.stopped";
}

base::WallTime Floor(base::WallTime time) { return std::chrono::floor<std::chrono::seconds>(time); }

std::chrono::seconds LengthOf(TimeSpan span) {
  return std::chrono::floor<std::chrono::seconds>(span.to - span.from);
}

}  // namespace

base::Result<base::WallTime> ParseSince(std::string_view text, base::WallTime now) {
  std::optional<base::WallTime> time;
  if (const auto ago = base::ParseDuration(text)) {
    time = now - *ago;
  } else {
    std::string full(text);
    if (full.size() == 10) full += "T00:00:00Z";
    if (const auto moment = base::ParseRfc3339(full)) time = *moment;
  }
  if (!time || *time >= now || *time < base::WallTime{}) {
    return base::Fail(base::Code::kInvalidArgument, "backfill.time",
                      fmt::format("\"{}\" is no time in the past: 30d, 2026-01-01 or "
                                  "2026-01-01T08:00:00Z",
                                  text));
  }
  return Floor(*time);
}

Backfill::Backfill(BackfillOptions options, CommandRunner& runner, EvidenceSink& sink,
                   base::Clock& clock, Hooks hooks)
    : options_(std::move(options)),
      runner_(runner),
      sink_(sink),
      clock_(clock),
      hooks_(std::move(hooks)),
      chunk_(options_.chunk),
      backoff_(options_.backoff, /*seed=*/1) {
  progress_.span = {Floor(options_.span.from), Floor(options_.span.to)};
  progress_.done_to = progress_.span.from;
}

void Backfill::Tell(std::string_view waiting_for) {
  progress_.waiting_for = waiting_for;
  if (hooks_.on_progress) hooks_.on_progress(progress_);
}

base::Status Backfill::Run(std::stop_token stop) {
  if (!options_.again) {
    EXPANSE_ASSIGN_OR_RETURN(covered_, LoadCoveredTime(options_.state_path, options_.cluster));
  }
  const std::vector<TimeSpan> gaps = covered_.GapsIn(progress_.span);
  for (const TimeSpan& gap : gaps) to_look_at_ += LengthOf(gap);
  EXPANSE_ASSIGN_OR_RETURN(const SacctFormat format, Format(stop));
  for (const TimeSpan& gap : gaps) EXPANSE_RETURN_IF_ERROR(RunGap(format, gap, stop));
  progress_.done_to = progress_.span.to;
  progress_.fraction = 1;
  Tell("");
  return {};
}

// What to do about the `failed`th failure in a row: an error gives up.
base::Status Backfill::Handle(const base::Error& error, int failed, std::stop_token stop) {
  ++progress_.failures;
  if (IsFinal(error) || failed >= options_.tries) return std::unexpected(error);
  Tell(error.message);
  if (!clock_.WaitFor(stop, backoff_.Next())) return Stopped();
  return {};
}

base::Result<SacctFormat> Backfill::Format(std::stop_token stop) {
  for (int failed = 1;; ++failed) {
    auto format = AskSacctFormat(runner_, stop);
    if (format || stop.stop_requested()) {
      if (!format) return std::unexpected(Stopped().error());
      backoff_.Reset();
      return format;
    }
    EXPANSE_RETURN_IF_ERROR(Handle(format.error(), failed, stop));
  }
}

base::Status Backfill::RunGap(const SacctFormat& format, TimeSpan gap, std::stop_token stop) {
  int failed = 0;
  for (base::WallTime at = gap.from; at < gap.to;) {
    const TimeSpan chunk{at, std::min(at + chunk_, gap.to)};
    if (!WaitForRoom(stop)) return Stopped();
    const base::Status imported = Import(format, chunk, stop);
    if (stop.stop_requested()) return Stopped();
    if (!imported) {
      chunk_ = std::max(chunk_ / 2, options_.smallest_chunk);
      EXPANSE_RETURN_IF_ERROR(Handle(imported.error(), ++failed, stop));
      continue;
    }
    failed = 0;
    backoff_.Reset();
    MarkDone(chunk);
    EXPANSE_RETURN_IF_ERROR(SaveCoveredTime(options_.state_path, options_.cluster, covered_));
    at = chunk.to;
    progress_.done_to = at;
    Tell("");
    if (at < progress_.span.to && !Pause(last_served_, stop)) return Stopped();
  }
  return {};
}

void Backfill::MarkDone(TimeSpan chunk) {
  looked_at_ += LengthOf(chunk);
  if (to_look_at_ > 0s)
    progress_.fraction =
        static_cast<double>(looked_at_.count()) / static_cast<double>(to_look_at_.count());
  covered_.Add({chunk.from, std::min(chunk.to, Floor(clock_.Now()) - options_.settle)});
}

bool Backfill::WaitForRoom(std::stop_token stop) {
  if (!hooks_.has_room || hooks_.has_room()) return !stop.stop_requested();
  Tell("room in the outbox");
  while (!hooks_.has_room()) {
    if (!clock_.WaitFor(stop, 1s)) return false;
  }
  return true;
}

// True if it was not stopped.
bool Backfill::Pause(std::chrono::microseconds served, std::stop_token stop) {
  const auto in_proportion = std::chrono::duration<double, std::micro>(
      static_cast<double>(served.count()) * (1 / options_.share - 1));
  const auto pause = std::max<base::Duration>(
      options_.pause, std::chrono::duration_cast<std::chrono::microseconds>(in_proportion));
  return pause <= 0ns ? !stop.stop_requested() : clock_.WaitFor(stop, pause);
}

base::Status Backfill::Import(const SacctFormat& format, TimeSpan chunk, std::stop_token stop) {
  const std::string separator = NewSacctSeparator();
  batch_.clear();
  emitted_ = {};
  SacctReader reader(
      format, separator, {.cluster = options_.cluster}, [this](Job run) { Take(std::move(run)); },
      &restarts_);
  const CommandOutcome outcome = runner_.Run(
      {.program = Program::kSacct,
       // Both ends of sacct's window count.
       .arguments = SacctArguments(format, separator, SacctWindow{chunk.from, chunk.to - 1s}),
       .deadline = options_.deadline,
       .on_output =
           [&](std::string_view piece) {
             reader.Feed(piece);
             return emitted_.has_value();
           }},
      stop);
  ++progress_.queries;
  last_served_ = outcome.cost.served();
  progress_.served += last_served_;
  reader.Finish(outcome.status.has_value() && emitted_.has_value());
  if (emitted_) emitted_ = EmitBatch();
  progress_.rows += reader.figures().rows;
  progress_.bad_rows += reader.figures().bad_rows + reader.figures().orphan_steps;
  EXPANSE_RETURN_IF_ERROR(emitted_);
  EXPANSE_RETURN_IF_ERROR(outcome.status);
  if (reader.figures().torn) {
    return base::Fail(base::Code::kDataLoss, "slurm.output_torn",
                      "sacct's output ended within a row");
  }
  if (outcome.cost.wall > options_.slow) {
    chunk_ = std::max(chunk_ / 2, options_.smallest_chunk);
  } else if (outcome.cost.wall < options_.slow / 4) {
    chunk_ = std::min(chunk_ * 2, options_.chunk);
  }
  return {};
}

void Backfill::Take(Job run) {
  if (!emitted_) return;
  const auto key = KeyOf(run);
  if (!key) return;
  RedactTexts(run.execution);
  batch_.emplace_back(evidence::ExecutionObservation{*key, std::move(run.execution)});
  if (batch_.size() >= options_.batch) emitted_ = EmitBatch();
}

base::Status Backfill::EmitBatch() {
  while (!batch_.empty()) {
    // A copy, since what the sink does not take must be offered again.
    const EmittedAll done = sink_.EmitAll(batch_, clock_.Now());
    progress_.runs += done.taken;
    batch_.erase(batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(done.taken));
    if (done.status) continue;
    if (done.status.error().code != base::Code::kInvalidArgument) return done.status;
    ++progress_.refused;
    batch_.erase(batch_.begin());
  }
  return {};
}

}  // namespace expanse::schedulers::slurm
