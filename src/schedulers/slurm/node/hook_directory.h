// The node's event directory (docs/formats/hook-event.md): what Prologs and Epilogs left there is
// taken in the order in which it happened. Used by whoever samples the node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "schedulers/slurm/node/hook_event.h"

namespace expanse::schedulers::slurm {

struct HookDirectoryFigures {
  std::uint64_t taken = 0;          // since start
  std::uint64_t quarantined = 0;    // no events of ours, since start
  base::WallTime quarantined_at{};  // of the last one
  std::size_t waiting = 0;          // at the last look, beyond what it could take
  base::WallTime last_at{};         // of the newest event so far
};

// Not thread-safe. A look costs four system calls while there is nothing.
class HookDirectory {
 public:
  // A file in the directory, as the kernel tells it.
  struct Entry {
    std::string name;
    HookEvent event;
  };

  // Touches nothing. `quarantine`: where at most 64 files that are no events go, for people to look
  // at; empty: they are deleted.
  HookDirectory(std::string directory, std::string quarantine);

  // The oldest events, at most `limit`. They stay until Remove: offered again otherwise. Empty when
  // there is no directory yet. Fails with hook.untrusted when others than root and this process's
  // user may write there, os.* when it cannot be read.
  base::Result<std::vector<Entry>> Look(base::WallTime now, std::size_t limit = 256);
  // Of events that are safe elsewhere. One that is missing is success.
  base::Status Remove(const Entry& entry);

  const HookDirectoryFigures& figures() const { return figures_; }

 private:
  struct Candidate;
  std::vector<Candidate> List(int directory);
  base::Result<HookEvent> Read(int directory, const Candidate& candidate, std::string* bytes) const;
  void TakeAway(int directory, const std::string& name, const std::string& bytes,
                std::string_view reason, base::WallTime now);

  const std::string directory_;
  const std::string quarantine_;
  base::RateLimit log_{std::chrono::seconds(60)};
  HookDirectoryFigures figures_;
};

}  // namespace expanse::schedulers::slurm
