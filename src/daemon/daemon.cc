#include "daemon/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "schedulers/key_resolver.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

HeartbeatOptions Filled(HeartbeatOptions heartbeat, const DaemonOptions& options) {
  heartbeat.daemon_version = options.version;
  heartbeat.node = options.node;
  heartbeat.health_path = base::JoinPath(options.state_dir, "health.json");
  return heartbeat;
}

CaptureOptions Filled(CaptureOptions capture, const DaemonOptions& options) {
  capture.sampler.node = options.node;
  return capture;
}

std::unique_ptr<spool::SpoolDrain> MakeDrain(const DaemonOptions& options, const DaemonParts& parts,
                                             Outboxes& outboxes) {
  spool::SpoolDrainOptions spool = options.spool;
  if (spool.worker.reader.spool.empty()) return nullptr;
  spool.state_dir = options.state_dir;
  for (const auto& observer : parts.observers) {
    if (schedulers::KeyResolver* resolver = observer->key_resolver()) {
      return std::make_unique<spool::SpoolDrain>(std::move(spool), *resolver, outboxes, parts.files,
                                                 parts.clock);
    }
  }
  return nullptr;
}

}  // namespace

base::Result<base::UniqueFd> LockStateDirectory(const std::string& state_dir) {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(state_dir, 0700));
  const std::string path = base::JoinPath(state_dir, "lock");
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return base::FailErrno(errno, "open " + path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return base::FailErrno(errno, "lock " + path);
    return base::Fail(
        base::Code::kFailedPrecondition, "daemon.locked",
        fmt::format("another expanse-daemon uses {}; stop it or choose another --state-dir",
                    state_dir));
  }
  return fd;
}

base::Result<std::unique_ptr<Daemon>> Daemon::Create(DaemonOptions options, DaemonParts parts) {
  EXPANSE_ASSIGN_OR_RETURN(base::UniqueFd lock, LockStateDirectory(options.state_dir));
  EXPANSE_ASSIGN_OR_RETURN(auto outboxes,
                           Outboxes::Open({.directory = base::JoinPath(options.state_dir, "outbox"),
                                           .max_bytes = options.outbox_max_bytes},
                                          parts.files, parts.clock));
  auto drain = MakeDrain(options, parts, *outboxes);
  return std::unique_ptr<Daemon>(new Daemon(std::move(options), std::move(parts), std::move(lock),
                                            std::move(outboxes), std::move(drain)));
}

Daemon::Daemon(DaemonOptions options, DaemonParts parts, base::UniqueFd lock,
               std::unique_ptr<Outboxes> outboxes, std::unique_ptr<spool::SpoolDrain> drain)
    : options_(std::move(options)),
      clock_(parts.clock),
      fixed_rows_(std::move(parts.fixed_rows)),
      lock_(std::move(lock)),
      outboxes_(std::move(outboxes)),
      session_(parts.planes, std::move(parts.identity), parts.clock,
               std::move(parts.reload_identity)),
      uploader_(*outboxes_, session_, parts.clock, options_.uploader),
      cluster_reporter_(session_, parts.clock, options_.heartbeat.timeout),
      heartbeats_(
          session_, parts.clock, Filled(options_.heartbeat, options_), [this] { return Rows(); },
          [this] { cluster_reporter_.Report(); }),
      capture_(Filled(options_.capture, options_), std::move(parts.observers),
               std::move(parts.sources), *outboxes_, board_, parts.clock, &cluster_reporter_,
               std::move(drain)) {}

Daemon::~Daemon() {
  if (capture_thread_.joinable()) (void)Drain(0ms);
}

std::vector<evidence::HealthRow> Daemon::Rows() {
  const base::WallTime now = clock_.Now();
  std::vector<evidence::HealthRow> rows = board_.Rows(clock_.Mono(), now, options_.stalled_after);
  rows.push_back(outboxes_->health(now));
  rows.push_back(uploader_.health(now));
  if (auto row = cluster_reporter_.health(now)) rows.push_back(std::move(*row));
  for (evidence::HealthRow row : fixed_rows_) {
    row.checked_at = now;
    rows.push_back(std::move(row));
  }
  return rows;
}

void Daemon::Start() {
  {
    std::scoped_lock lock(mutex_);
    capture_done_ = upload_done_ = heartbeat_done_ = false;
  }
  auto done = [this](bool& flag) {
    {
      std::scoped_lock lock(mutex_);
      flag = true;
    }
    changed_.notify_all();
  };
  capture_thread_ = std::jthread([this, done](std::stop_token stop) {
    capture_.Run(stop);
    done(capture_done_);
  });
  upload_thread_ = std::jthread([this, done](std::stop_token stop) {
    UploadThread(stop);
    done(upload_done_);
  });
  heartbeat_thread_ = std::jthread([this, done](std::stop_token stop) {
    heartbeats_.Run(stop);
    done(heartbeat_done_);
  });
}

bool Daemon::WaitFor(const bool& done, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, until, [&] { return done; });
}

void Daemon::UploadThread(std::stop_token stop) {
  uploader_.Run(stop);
  std::chrono::steady_clock::time_point until;
  {
    std::scoped_lock lock(mutex_);
    until = drain_until_;
  }
  // What the last look found goes out too, if there is time.
  if (!WaitFor(capture_done_, until)) return;
  uploader_.Drain(std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now()));
}

bool Daemon::Drain(std::chrono::milliseconds deadline) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  {
    std::scoped_lock lock(mutex_);
    drain_until_ = until;
  }
  capture_thread_.request_stop();
  upload_thread_.request_stop();
  heartbeat_thread_.request_stop();
  const bool all = WaitFor(capture_done_, until) && WaitFor(upload_done_, until) &&
                   WaitFor(heartbeat_done_, until);
  if (!all) return false;
  // A daemon that ended is not healthy, however fresh its last word.
  (void)base::RemoveFile(base::JoinPath(options_.state_dir, "health.json"));
  return true;
}

}  // namespace expanse::daemon
