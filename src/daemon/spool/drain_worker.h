// The controller's hands in the spool: looks for segments, reads and checks them ahead of the
// capture thread, deletes and sets aside what that thread is done with. All that may hang on a dead
// file server happens in here, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "daemon/file_io.h"
#include "daemon/spool/host_clock.h"
#include "daemon/spool/segment_evidence.h"
#include "daemon/spool/segment_format.h"
#include "daemon/spool/spool_reader.h"

namespace expanse::daemon::spool {

struct DrainWorkerOptions {
  SpoolReaderOptions reader;
  bool make_spool = false;  // at the first look, if its parent is there
  std::chrono::milliseconds look_interval{1000};
  std::size_t ready_bytes = 32U << 20;  // read ahead, as files
  std::size_t listed_per_host = 256;    // names kept of a host's backlog
  std::size_t parked_per_host = 2000;   // segments that wait for their job
  std::size_t max_hosts = 20'000;
  // How often a directory is listed after its time changed: it may change again within the tick of
  // that time. (Tests, whose seconds are shorter than such a tick, list always.)
  int listings_per_change = 2;
};

// A segment that may be believed, in the order of its host's.
struct ReadSegment {
  std::string host;
  SegmentName name;
  ClockReading handed_over;
  std::optional<Sighting> sighting;  // absent: it was not seen to come, or was read before
  HostEvidence evidence;
  std::size_t bytes = 0;
  bool again = false;  // handed out before
  bool noted = false;  // for whoever takes it: the clock was looked at
  bool gone = false;   // it was to be read again and is not there any more, or no good; no answer
};

struct DrainWorkerFigures {
  std::uint64_t hosts = 0;
  std::uint64_t strange = 0;    // entries that are no host's directory
  std::uint64_t untrusted = 0;  // directories that others own or may write to
  std::uint64_t backlog = 0;    // segments listed and not taken; more may lie behind them
  std::uint64_t deleted = 0;
  std::uint64_t undeletable = 0;                     // taken, and still there
  std::map<std::string, std::uint64_t> quarantined;  // by reason, since start
  std::string quarantined_last;                      // host and why
  std::uint64_t read_failures = 0;
  std::string reason;  // why the last look failed; empty: it did not
  std::string message;
  std::optional<base::MonoTime> inside_since;  // of a look that has not come back
  double look_seconds = 0;                     // of the last one
};

class DrainWorker {
 public:
  // `files` and `clock` outlive it, also when its thread is left behind.
  DrainWorker(DrainWorkerOptions options, FileIo& files, base::Clock& clock);

  // One look: does what was asked for, lists what changed, reads ahead. For the thread, or for
  // tests.
  void Look();
  // A look every interval, and whenever what was read ahead is half gone.
  void Run(const std::stop_token& stop);

  // All below are for the capture thread; they wait for no file system.

  // The next segments, about `max_bytes` of them. Each has to be answered, now or later, by one of
  // the three below.
  std::vector<ReadSegment> Take(std::size_t max_bytes);
  void Delete(const std::string& host, const SegmentName& name);
  void Quarantine(const std::string& host, const SegmentName& name, std::string_view reason);
  // It stays where it is until ReadAgain.
  void Park(const std::string& host, const SegmentName& name);
  void ReadAgain(const std::string& host, const SegmentName& name);
  DrainWorkerFigures figures() const;

 private:
  enum class Where : std::uint8_t { kListed, kTaken, kParked, kStuck };
  struct File {
    Where where = Where::kListed;
    int torn_looks = 0;
    bool again = false;                // it was handed out before
    std::optional<Sighting> sighting;  // as far as the look goes
  };
  struct Host {
    std::int64_t changed_ns = 0;
    int looks_since_change = 0;
    bool more = true;  // the last listing did not hold all, or there was none
    std::uint64_t seen_at_look = 0;
    base::WallTime looked_at{};         // when all that was there was known
    std::map<std::string, File> files;  // by file name: in order
    std::size_t listed = 0;             // of them
    std::size_t parked = 0;
  };
  struct Request {
    enum class Kind : std::uint8_t { kDelete, kQuarantine, kPark, kReadAgain };
    Kind kind = Kind::kDelete;
    std::string host;
    SegmentName name;
    std::string reason;
  };

  base::Status LookAt();
  void DoRequests();
  void Do(const Request& request);
  void Move(Host* host, File* file, Where where);
  void SetAside(const std::string& host, const SegmentName& name, std::string_view reason);
  base::Status LookAtHosts();
  void ListHost(const std::string& name, const HostEntry& entry, Host* host);
  void ReadAhead();
  // False: the host has nothing (more) to be read at this look.
  bool ReadOne(const std::string& name, Host* host);
  void TellGone(const std::string& host, const SegmentName& name);
  void Ask(Request request);
  bool HasRoom() const;

  const DrainWorkerOptions options_;
  base::Clock& clock_;

  // Of the worker's thread.
  SpoolReader reader_;
  std::map<std::string, Host, std::less<>> hosts_;
  std::string next_host_;  // where reading goes on, so that every host gets its turn
  std::uint64_t look_ = 0;
  base::WallTime looked_at_{};  // of the look before; zero: none
  base::WallTime looking_at_{};
  bool sees_at_once_ = false;
  std::optional<std::chrono::microseconds> server_skew_;
  base::MonoTime next_server_skew_{};
  base::MonoTime next_stuck_{};
  base::Status read_status_;  // the first failure to read at this look
  base::RateLimit quarantine_log_{std::chrono::seconds(10)};

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any wake_;
  std::deque<ReadSegment> ready_;
  std::size_t ready_bytes_ = 0;
  std::vector<Request> requests_;
  bool wanted_ = false;  // a look before the interval is over
  DrainWorkerFigures figures_;
};

}  // namespace expanse::daemon::spool
