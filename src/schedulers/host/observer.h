// Runs of a bare host, as the daemon sees them: takes what `expanse run` leaves in the spool into
// the outbox, follows the commands that run now, and finishes the records of runs whose `expanse
// run` was killed. See docs/formats/host-spool.md.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/host/spool.h"
#include "schedulers/observer.h"

namespace expanse::schedulers::host {

struct HostObserverOptions {
  // Read in this order; a missing one is looked for again each time. Usually
  // DefaultSpoolDirectory() and, for a daemon that runs as an ordinary user,
  // PrivateSpoolDirectory().
  std::vector<std::string> spool_directories;
  // A directory of the daemon's own (made 0700): which runs it follows, and bad spool files.
  std::string state_directory;
  std::string proc = "/proc";
  // Name of a user; null: the system's. For tests.
  std::function<std::string(uid_t)> user_name;
  std::size_t max_files = 2'000;  // taken by one look at a spool, and no more than it can take
  std::chrono::milliseconds max_look{500};  // in this time: each is synced to the disk
  std::size_t max_quarantined = 64;         // kept for people to look at; more are deleted
};

// Not thread-safe. An event is deleted from the spool only after the sink has it; a crash between
// the two repeats the event, which changes nothing in the store.
class HostObserver : public Observer {
 public:
  explicit HostObserver(HostObserverOptions options);

  std::string_view name() const override { return "host"; }
  // Makes the state directory and takes up the runs that were followed before. A spool that is
  // missing is no failure here: health says so.
  base::Status Start() override;
  // Cheap when nothing happened: one stat per directory, one read of /proc/PID/stat per run.
  void Observe(const collect::Tick& tick, EvidenceSink& sink) override;
  const std::vector<collect::TrackedWorkload>& running() const override { return running_; }
  std::vector<evidence::HealthRow> health() const override;
  void Stop() override {}

 private:
  struct Spool {
    std::string directory;
    std::optional<SpoolReader> reader;
    std::optional<base::Error> error;
    base::WallTime seen_at{};  // directory's time of change at the last complete look
    // Events that were taken and could not be removed: not to be taken again every second.
    std::map<std::string, ino_t> stuck;
  };
  // A run whose end has not been seen.
  struct Run {
    SpoolEvent start;
    uid_t owner = 0;
    std::vector<std::string> cgroups;  // verified: the root process is in them
    bool verified = false;             // the root process is the owner's
    std::optional<base::MonoTime> gone_since;
  };

  bool MayFollow(uid_t owner) const;
  void ObserveSpool(Spool& spool, const collect::Tick& tick, EvidenceSink& sink);
  // False: the sink refused; the rest waits.
  bool TakeFile(Spool& spool, const std::string& name, const collect::Tick& tick,
                EvidenceSink& sink);
  bool TakeEvent(const SpooledEvent& spooled, const collect::Tick& tick, EvidenceSink& sink);
  void Follow(SpoolEvent start, uid_t owner);
  void Forget(const std::string& key);
  void FollowRuns(const collect::Tick& tick, EvidenceSink& sink);
  bool FinishLost(const Run& run, const collect::Tick& tick, EvidenceSink& sink);
  void RebuildRunning();
  evidence::ExecutionKey KeyOf(std::string_view run_id, uid_t owner) const;
  std::string UserName(uid_t uid);
  std::string StatePath(const std::string& key) const;

  HostObserverOptions options_;
  std::vector<Spool> spools_;
  std::map<std::string, Run> runs_;  // by execution identity
  std::vector<collect::TrackedWorkload> running_;
  std::map<uid_t, std::string> user_names_;
  base::WallTime observed_at_{};
  std::uint64_t events_ = 0;
  std::uint64_t quarantined_ = 0;
  std::uint64_t lost_ = 0;        // ends that nobody saw
  std::uint64_t unreadable_ = 0;  // files at the last look
  std::uint64_t refused_ = 0;     // events that the sink did not take at the last look
  bool behind_ = false;           // the last look left files for the next one
};

}  // namespace expanse::schedulers::host
