#include "schedulers/slurm/work_lane.h"

#include <utility>

namespace expanse::schedulers::slurm {

using namespace std::chrono_literals;

ThreadLane::ThreadLane(std::size_t most_waiting)
    : most_waiting_(most_waiting),
      state_(std::make_shared<State>()),
      thread_([state = state_] { Run(state); }) {}

ThreadLane::~ThreadLane() { Stop(5s); }

bool ThreadLane::Post(Work work) {
  std::scoped_lock lock(state_->mutex);
  if (state_->stop.stop_requested() || state_->waiting.size() >= most_waiting_) return false;
  state_->waiting.push_back(std::move(work));
  state_->changed.notify_all();
  return true;
}

void ThreadLane::Stop(std::chrono::milliseconds patience) {
  if (!thread_.joinable()) return;
  std::unique_lock lock(state_->mutex);
  state_->waiting.clear();
  lock.unlock();
  state_->stop.request_stop();  // may run callbacks of the work: not under the lock
  lock.lock();
  state_->changed.notify_all();
  const bool ended = state_->changed.wait_for(lock, patience, [&] { return state_->done; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void ThreadLane::Run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  const std::stop_token stop = state->stop.get_token();
  while (true) {
    state->changed.wait(lock, [&] { return stop.stop_requested() || !state->waiting.empty(); });
    if (stop.stop_requested()) break;
    Work work = std::move(state->waiting.front());
    state->waiting.pop_front();
    lock.unlock();
    work(stop);
    work = nullptr;  // what it owns goes without the lock
    lock.lock();
  }
  state->done = true;
  state->changed.notify_all();
}

}  // namespace expanse::schedulers::slurm
