// The daemon as a whole: outboxes, session, and the three threads (capture, upload, heartbeat).
// main.cc gives it its sources; tests give it fakes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/time.h"
#include "daemon/capture.h"
#include "daemon/cluster_reporter.h"
#include "daemon/file_io.h"
#include "daemon/health_board.h"
#include "daemon/heartbeat.h"
#include "daemon/outboxes.h"
#include "daemon/planes.h"
#include "daemon/session.h"
#include "daemon/spool/spool_drain.h"
#include "daemon/uploader.h"
#include "net/compute_identity.h"

namespace expanse::daemon {

struct DaemonOptions {
  std::string state_dir;
  std::string version;
  std::string node;
  std::uint64_t outbox_max_bytes = 1U << 30;
  CaptureOptions capture;
  // Drained for the first observer with a key resolver; state_dir is filled in, without
  // worker.reader.spool there is none.
  spool::SpoolDrainOptions spool;
  UploaderOptions uploader;
  HeartbeatOptions heartbeat;  // version, node and path are filled in from the above
  std::chrono::milliseconds stalled_after{120'000};
};

struct DaemonParts {
  // With a spool these two live until the process ends: a thread that hangs in it is left behind.
  base::Clock& clock;
  FileIo& files;
  Planes& planes;
  net::ComputeIdentity identity;
  std::function<base::Result<net::ComputeIdentity>()> reload_identity;
  std::vector<std::unique_ptr<schedulers::Observer>> observers;
  std::vector<SamplerSource> sources;
  std::vector<evidence::HealthRow> fixed_rows;  // what was found out at start: privileges
};

// Start and Drain from one thread.
class Daemon {
 public:
  // Takes the state directory for itself. Fails with daemon.locked when another daemon holds it,
  // outbox.* or os.*.
  static base::Result<std::unique_ptr<Daemon>> Create(DaemonOptions options, DaemonParts parts);
  ~Daemon();  // drains, waiting as long as it takes

  void Start();
  // Ends in order: a last look and flush, a last upload, all within `deadline`. False: a thread is
  // still inside a call; what is acknowledged or on disk is safe, and the process may exit.
  bool Drain(std::chrono::milliseconds deadline);

  Outboxes& outboxes() { return *outboxes_; }

 private:
  Daemon(DaemonOptions options, DaemonParts parts, base::UniqueFd lock,
         std::unique_ptr<Outboxes> outboxes, std::unique_ptr<spool::SpoolDrain> drain);
  std::vector<evidence::HealthRow> Rows();
  void UploadThread(std::stop_token stop);
  bool WaitFor(const bool& done, std::chrono::steady_clock::time_point until);

  const DaemonOptions options_;
  base::Clock& clock_;
  const std::vector<evidence::HealthRow> fixed_rows_;
  base::UniqueFd lock_;
  std::unique_ptr<Outboxes> outboxes_;
  HealthBoard board_;
  Session session_;
  Uploader uploader_;
  ClusterReporter cluster_reporter_;
  Heartbeats heartbeats_;
  Capture capture_;

  std::mutex mutex_;  // guards the flags and the deadline
  std::condition_variable changed_;
  bool capture_done_ = true;
  bool upload_done_ = true;
  bool heartbeat_done_ = true;
  std::chrono::steady_clock::time_point drain_until_{};
  // Last: they end before anything that they use.
  std::jthread capture_thread_;
  std::jthread upload_thread_;
  std::jthread heartbeat_thread_;
};

// An exclusive lock on `state_dir`/lock, held until the descriptor closes. Fails with
// daemon.locked.
base::Result<base::UniqueFd> LockStateDirectory(const std::string& state_dir);

}  // namespace expanse::daemon
