// Evidence between the thread that reads files and the one that captures. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

#include "evidence/records.h"

namespace expanse::schedulers::slurm {

// Bounded in bytes by its writer, who asks full() before it makes more: nothing is dropped here.
class ResultQueue {
 public:
  explicit ResultQueue(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  bool full() const;
  std::size_t size() const;
  // Returns the bytes it takes.
  std::size_t Add(evidence::Payload payload);
  // The oldest, at most `max`.
  std::vector<evidence::Payload> Take(std::size_t max);
  // In front of all, in their order.
  void PutBack(std::vector<evidence::Payload> payloads);

 private:
  const std::size_t max_bytes_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<evidence::Payload> queue_;
  std::size_t bytes_ = 0;
};

}  // namespace expanse::schedulers::slurm
