// A thread on which slow things are done one after the other, so that the capture thread never
// waits: commands, files on network file systems.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace expanse::schedulers::slurm {

class WorkLane {
 public:
  using Work = std::function<void(std::stop_token)>;
  virtual ~WorkLane() = default;
  // Never blocks. False: too much waits, or the lane has stopped; the work was not taken.
  [[nodiscard]] virtual bool Post(Work work) = 0;
  // What runs is asked to stop, what waits is dropped. Waits for no longer than `patience`: work
  // that is stuck in the kernel is left behind, so work owns (shared) all that it uses.
  virtual void Stop(std::chrono::milliseconds patience) = 0;
};

// Thread-safe. The destructor stops, with a patience of five seconds.
class ThreadLane final : public WorkLane {
 public:
  explicit ThreadLane(std::size_t most_waiting = 16);
  ~ThreadLane() override;
  bool Post(Work work) override;
  void Stop(std::chrono::milliseconds patience) override;

 private:
  struct State {
    std::mutex mutex;  // guards all below
    std::condition_variable changed;
    std::deque<Work> waiting;
    std::stop_source stop;
    bool done = false;
  };
  static void Run(const std::shared_ptr<State>& state);

  const std::size_t most_waiting_;
  const std::shared_ptr<State> state_;  // shared with the thread, which may outlive us
  std::thread thread_;
};

}  // namespace expanse::schedulers::slurm
