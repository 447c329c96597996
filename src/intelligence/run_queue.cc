#include "intelligence/run_queue.h"

#include "base/log.h"

namespace expanse::intelligence {
namespace {

using namespace std::chrono_literals;

// Between two tries at a store that fails.
constexpr auto kPause = 1s;

void LogFailure(std::string_view what, const base::Error& error) {
  base::LogError("intelligence.queue",
                 {{"what", what}, {"reason", error.reason}, {"error", error.message}});
}

}  // namespace

base::Status RunQueue::Start() {
  EXPANSE_ASSIGN_OR_RETURN(
      const std::size_t failed,
      runs_.FailRunning(clock_.Now(), "the server stopped while it worked on this; ask again",
                        "run.interrupted"));
  if (failed > 0) base::LogWarn("intelligence.interrupted", {{"runs", failed}});
  EXPANSE_ASSIGN_OR_RETURN(const std::size_t waiting, runs_.CountQueued());
  metrics_.queued().Set(static_cast<double>(waiting));
  for (std::size_t i = 0; i < options_.queue_workers; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { Loop(stop); });
  return {};
}

void RunQueue::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

base::Status RunQueue::Enqueue(const store::RunRow& run) {
  EXPANSE_RETURN_IF_ERROR(
      runs_.Enqueue(run, {.per_user = options_.queued_per_user, .in_all = options_.queued}));
  metrics_.queued().Add(1);
  {
    const std::scoped_lock lock(mutex_);
    ++added_;
  }
  wake_.notify_all();
  return {};
}

void RunQueue::Loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::uint64_t seen = 0;
    {
      const std::scoped_lock lock(mutex_);
      seen = added_;
    }
    if (!WorkOff(stop)) {
      clock_.WaitFor(stop, kPause);
      continue;
    }
    // A run that this thread left because its user has enough running is taken by the thread that
    // ends one of those.
    std::unique_lock lock(mutex_);
    wake_.wait(lock, stop, [&] { return added_ != seen; });
  }
}

bool RunQueue::WorkOff(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto run = runs_.TakeQueued(options_.running_per_user);
    if (!run) {
      LogFailure("taking a run", run.error());
      return false;
    }
    if (!*run) return true;
    metrics_.queued().Add(-1);
    Finish(stop, **run, work_(**run, stop));
  }
  return true;
}

void RunQueue::Finish(const std::stop_token& stop, const store::RunRow& run,
                      const store::RunOutcome& outcome) {
  bool told = false;
  while (true) {
    const auto finished = runs_.Finish(run.run_id, outcome);
    if (finished || finished.error().code == base::Code::kFailedPrecondition) return;
    if (!told) LogFailure("keeping an answer", finished.error());
    told = true;
    if (!clock_.WaitFor(stop, kPause)) return;  // failed as interrupted at the next start
  }
}

}  // namespace expanse::intelligence
