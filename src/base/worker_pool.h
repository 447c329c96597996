// A fixed number of threads over a bounded queue. Full means no: the caller sheds the load.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace expanse::base {

// Thread-safe. The destructor runs what is queued and joins.
class WorkerPool {
 public:
  WorkerPool(std::size_t threads, std::size_t queue_limit);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the queue is full or the pool stops: the work was not taken.
  [[nodiscard]] bool TrySubmit(std::function<void()> work);
  // Takes no more work, runs what is queued, joins. Idempotent.
  void Drain();
  std::size_t queued() const;

 private:
  void Run();
  const std::size_t queue_limit_;
  mutable std::mutex mutex_;  // guards queue_ and stopping_
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace expanse::base
