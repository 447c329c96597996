// A thread that works on a file system which may hang: it can be left behind when it does not come
// back in time, so that neither a tick nor the end of the program waits for a dead file server.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace expanse::base {

// Start and Stop from one thread. What `run` uses must be owned by it (captured shared pointers) or
// live until the process ends.
class AbandonableThread {
 public:
  // How long an end that was not asked for in time waits: a thread that only works must not be left
  // behind with what its owner is about to take away.
  static constexpr std::chrono::milliseconds kPatience{2000};

  AbandonableThread() = default;
  AbandonableThread(const AbandonableThread&) = delete;
  AbandonableThread& operator=(const AbandonableThread&) = delete;
  ~AbandonableThread() { (void)Stop(kPatience); }

  void Start(std::function<void(std::stop_token)> run) {
    state_ = std::make_shared<State>();
    thread_ = std::thread([state = state_, run = std::move(run)]() mutable {
      run(state->stop.get_token());
      run = nullptr;  // what it owns goes before anybody is told that it is over
      {
        std::scoped_lock lock(state->mutex);
        state->done = true;
      }
      state->changed.notify_all();
    });
  }

  // Asks for the end and waits for it. False: it is still inside a call and was left to itself.
  bool Stop(std::chrono::milliseconds deadline) {
    if (!thread_.joinable()) return true;
    state_->stop.request_stop();
    bool done = false;
    {
      std::unique_lock lock(state_->mutex);
      done = state_->changed.wait_for(lock, deadline, [this] { return state_->done; });
    }
    if (done) {
      thread_.join();
    } else {
      thread_.detach();
    }
    return done;
  }

 private:
  struct State {
    std::stop_source stop;
    std::mutex mutex;  // guards done
    std::condition_variable changed;
    bool done = false;
  };
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace expanse::base
