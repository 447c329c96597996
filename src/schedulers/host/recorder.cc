#include "schedulers/host/recorder.h"

#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace expanse::schedulers::host {
namespace {

constexpr std::size_t kMaxWaiting = 16;

}  // namespace

struct Recorder::State {
  explicit State(SpoolWriter w) : writer(std::move(w)) {}
  SpoolWriter writer;  // the thread's alone
  std::mutex mutex;    // guards all below
  std::condition_variable changed;
  std::deque<Job> waiting;
  std::string trouble;
  bool stop = false;
  bool done = false;

  void Work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stop || !waiting.empty(); });
      if (waiting.empty()) break;
      Job job = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      job(writer);
      lock.lock();
      trouble = writer.trouble();
    }
    done = true;
    changed.notify_all();
  }
};

Recorder::Recorder(SpoolWriter writer) : state_(std::make_shared<State>(std::move(writer))) {
  // The thread takes no signals: they are for the command, and the loop passes them on.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([state = state_] { state->Work(); }).detach();
  } catch (const std::system_error&) {  // no more threads: the run goes unrecorded
    state_->done = true;
    state_->trouble = "no thread could be started to write the record";
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Recorder::~Recorder() { Finish(std::chrono::milliseconds(0)); }

void Recorder::Post(Job job) {
  const std::scoped_lock lock(state_->mutex);
  if (state_->stop) return;
  if (state_->waiting.size() >= kMaxWaiting) state_->waiting.pop_back();
  state_->waiting.push_back(std::move(job));
  state_->changed.notify_all();
}

bool Recorder::Finish(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  return state_->changed.wait_for(lock, patience, [this] { return state_->done; });
}

std::string Recorder::trouble() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->trouble;
}

}  // namespace expanse::schedulers::host
