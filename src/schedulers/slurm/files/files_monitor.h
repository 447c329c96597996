// What the thread that reads files is at and has done, for whoever reports it meanwhile.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace expanse::schedulers::slurm {

// Thread-safe.
class FilesMonitor {
 public:
  struct Figures {
    std::uint64_t followed = 0;  // jobs, now
    std::uint64_t looks = 0;
    std::uint64_t tails = 0;
    std::uint64_t bundles = 0;
    std::uint64_t redactions = 0;
    std::uint64_t troubles = 0;  // files that could not be read at a job's last look
    double cpu_s = 0;
    double overdue_s = 0;         // of the routine look that has waited for longest
    bool rights_refused = false;  // the last switch to a user's rights
  };

  // From here on the thread may be stuck in a file system.
  void Enter(std::string_view path, base::MonoTime now);
  void Leave();
  void Set(const Figures& figures);
  Figures figures() const;
  // For how long it has been inside, and where; nothing if it is not.
  std::optional<std::pair<base::Duration, std::string>> Inside(base::MonoTime now) const;

 private:
  mutable std::mutex mutex_;  // guards all below
  Figures figures_;
  std::string path_;
  std::optional<base::MonoTime> since_;
};

}  // namespace expanse::schedulers::slurm
