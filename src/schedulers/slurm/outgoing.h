// Evidence on its way to the outbox: offered in order, in batches, until it is taken. While some of
// it waits, the observer takes nothing new, so it is as large as one look at most. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/time.h"
#include "evidence/records.h"
#include "schedulers/observer.h"

namespace expanse::schedulers::slurm {

class Outgoing {
 public:
  void Add(evidence::Payload payload) { waiting_.push_back(std::move(payload)); }
  // True when all was taken. What can never be taken is left out and counted.
  bool Flush(EvidenceSink& sink, base::WallTime at);

  bool empty() const { return waiting_.empty(); }
  // So many wait that they are to be offered before more is added; where they are not taken, what
  // can wait elsewhere does.
  bool is_long() const { return waiting_.size() >= 1000; }
  std::size_t size() const { return waiting_.size(); }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t refused() const { return refused_; }   // can never be taken
  const base::Error& error() const { return error_; }  // of the last try; empty reason: none

 private:
  std::deque<evidence::Payload> waiting_;
  std::uint64_t sent_ = 0;
  std::uint64_t refused_ = 0;
  base::Error error_;
};

}  // namespace expanse::schedulers::slurm
