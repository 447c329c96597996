// Copies closed segments from the node to <prefix>/spool/<host>/, oldest first, durably. All that
// may hang on a dead file server happens in here, on a thread of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "base/retry.h"
#include "base/time.h"
#include "daemon/file_io.h"
#include "daemon/spool/part_queue.h"

namespace expanse::daemon::spool {

struct ShipperOptions {
  std::string spool;  // <prefix>/spool; must be there
  std::string host;
  std::uint64_t max_bytes = 512U << 20;  // of the host's segments in the spool
};

struct ShipperFigures {
  std::string reason;  // of the last failure; empty once a segment went through
  std::string message;
  std::optional<base::MonoTime> inside_since;  // a call that has not come back
  std::uint64_t failures = 0;
  std::uint64_t dropped_samples = 0;  // segments in the spool, for want of space
  std::uint64_t dropped_events = 0;
};

// Run and ShipOne on one thread; figures() is thread-safe.
class Shipper {
 public:
  // `files` and `clock` outlive it, also when its thread is left behind.
  Shipper(ShipperOptions options, std::shared_ptr<PartQueue> queue, FileIo& files,
          base::Clock& clock);

  // Copies the oldest segment. False: there is none, or it failed and is to be tried later.
  bool ShipOne();
  // Ships as they come; after a failure with growing pauses.
  void Run(const std::stop_token& stop);
  ShipperFigures figures() const;

 private:
  base::Status Ship(const Part& part);
  base::Status PrepareDirectory();
  base::Status Write(const std::string& bytes, const std::string& name);
  base::Status MakeRoom(std::uint64_t bytes);
  base::Status DropOldest(std::uint64_t at_least);
  void GiveToOwner(int fd) const;

  const ShipperOptions options_;
  const std::string directory_;
  const std::shared_ptr<PartQueue> queue_;
  FileIo& files_;
  base::Clock& clock_;
  base::Backoff backoff_;
  base::RateLimit log_{std::chrono::seconds(60)};
  bool prepared_ = false;
  uid_t owner_ = 0;  // of the spool
  gid_t group_ = 0;
  std::uint64_t bytes_ = 0;  // in the spool, as of measured_at_ and what went there since
  std::optional<base::MonoTime> measured_at_;

  mutable std::mutex mutex_;  // guards figures_
  ShipperFigures figures_;
};

}  // namespace expanse::daemon::spool
