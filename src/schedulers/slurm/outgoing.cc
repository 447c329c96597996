#include "schedulers/slurm/outgoing.h"

#include <algorithm>

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kBatch = 500;

}  // namespace

bool Outgoing::Flush(EvidenceSink& sink, base::WallTime at) {
  error_ = {};
  while (!waiting_.empty()) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(kBatch, waiting_.size()));
    // Copies: what is not taken is offered again.
    EmittedAll emitted = sink.EmitAll(
        std::vector<evidence::Payload>(waiting_.begin(), waiting_.begin() + count), at);
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(emitted.taken));
    sent_ += emitted.taken;
    if (emitted.status) continue;
    error_ = std::move(emitted.status.error());
    if (error_.code != base::Code::kInvalidArgument || waiting_.empty()) return false;
    waiting_.pop_front();
    ++refused_;
  }
  return true;
}

}  // namespace expanse::schedulers::slurm
