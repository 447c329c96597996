#include "schedulers/slurm/files/script_pool.h"

#include <algorithm>

#include "base/crypto.h"

namespace expanse::schedulers::slurm {

ScriptText ScriptPool::Add(std::string_view script, std::size_t keep) {
  std::string hash = base::Sha256(script);
  if (const auto known = by_hash_.find(hash); known != by_hash_.end()) {
    if (ScriptText text = known->second.lock()) return text;
  }
  script = script.substr(0, keep);
  if (*bytes_ + script.size() > max_bytes_) return nullptr;
  if (by_hash_.size() >= sweep_at_) {
    std::erase_if(by_hash_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * by_hash_.size());
  }
  *bytes_ += script.size();
  ScriptText text(new std::string(script), [bytes = bytes_](const std::string* gone) {
    *bytes -= gone->size();
    delete gone;
  });
  by_hash_[std::move(hash)] = text;
  return text;
}

}  // namespace expanse::schedulers::slurm
