#include "schedulers/slurm/files/result_queue.h"

#include <utility>
#include <variant>

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kOverhead = 512;  // of any payload, about

std::size_t BytesOf(const evidence::Payload& payload) {
  if (const auto* tail = std::get_if<evidence::LogTail>(&payload))
    return kOverhead + tail->data.size() + tail->first_error.size();
  std::size_t bytes = kOverhead;
  if (const auto* bundle = std::get_if<evidence::SourceBundle>(&payload)) {
    for (const auto& file : bundle->files) bytes += 128 + file.path.size() + file.data.size();
    bytes += 128 * bundle->skipped.size();
  }
  return bytes;
}

}  // namespace

bool ResultQueue::full() const {
  const std::scoped_lock lock(mutex_);
  return bytes_ >= max_bytes_;
}

std::size_t ResultQueue::size() const {
  const std::scoped_lock lock(mutex_);
  return queue_.size();
}

std::size_t ResultQueue::Add(evidence::Payload payload) {
  const std::size_t bytes = BytesOf(payload);
  const std::scoped_lock lock(mutex_);
  bytes_ += bytes;
  queue_.push_back(std::move(payload));
  return bytes;
}

std::vector<evidence::Payload> ResultQueue::Take(std::size_t max) {
  std::vector<evidence::Payload> taken;
  const std::scoped_lock lock(mutex_);
  while (taken.size() < max && !queue_.empty()) {
    taken.push_back(std::move(queue_.front()));
    queue_.pop_front();
    bytes_ -= BytesOf(taken.back());
  }
  return taken;
}

void ResultQueue::PutBack(std::vector<evidence::Payload> payloads) {
  const std::scoped_lock lock(mutex_);
  for (auto payload = payloads.rbegin(); payload != payloads.rend(); ++payload) {
    bytes_ += BytesOf(*payload);
    queue_.push_front(std::move(*payload));
  }
}

}  // namespace expanse::schedulers::slurm
