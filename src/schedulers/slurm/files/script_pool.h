// Texts of batch scripts that wait to be bundled, each kept once: the tasks of an array share
// theirs.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace expanse::schedulers::slurm {

using ScriptText = std::shared_ptr<const std::string>;

// Add is one thread's at a time; a ScriptText may be let go on any thread, also after the pool.
class ScriptPool {
 public:
  explicit ScriptPool(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  // Null when there are too many bytes of scripts already. Of a script that is longer than `keep`
  // only so much is kept.
  ScriptText Add(std::string_view script, std::size_t keep);
  std::size_t bytes() const { return *bytes_; }

 private:
  const std::size_t max_bytes_;
  std::shared_ptr<std::atomic<std::size_t>> bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::map<std::string, std::weak_ptr<const std::string>> by_hash_;
  std::size_t sweep_at_ = 64;  // entries at which those of scripts that are gone are removed
};

}  // namespace expanse::schedulers::slurm
