// The sampler's side of assignments: reads the host's file from time to time and has its jobs
// followed. Runs on the thread of JobFiles, because the shared file system may hang.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "schedulers/slurm/files/assignment.h"

namespace expanse::schedulers::slurm {

class JobFollower;

struct AssignmentReaderOptions {
  std::string directory;  // <prefix>/assign; empty: nothing is assigned
  std::string spool;      // <prefix>/spool: its owner is the controller's user
  std::string host;
  std::chrono::milliseconds interval{5'000};
  // The user of a job that this host knows by its own means; nothing: it does not. Called on the
  // thread of JobFiles.
  std::function<std::optional<uid_t>(std::uint32_t job_id)> user_of_job;
};

// Not thread-safe.
class AssignmentReader {
 public:
  explicit AssignmentReader(AssignmentReaderOptions options) : options_(std::move(options)) {}

  // Reads the file if it is time and it has changed. A file that is torn changes nothing; one that
  // is gone ends all assignments.
  void Poll(base::MonoTime now, JobFollower& follower);
  // Why the last reading failed: assign.*, or os.*; nothing when it did not.
  const base::Status& last() const { return last_; }
  std::uint64_t refused() const { return refused_; }  // jobs of another user than the host knows

 private:
  struct Version {
    ino_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    bool operator==(const Version&) const = default;
  };
  // Nothing: it is as it was. An empty list for a file that is not there.
  base::Result<std::optional<std::vector<Assignment>>> Read();
  void Apply(std::vector<Assignment> assignments, JobFollower& follower);

  const AssignmentReaderOptions options_;
  base::MonoTime next_{};
  std::optional<Version> version_;  // absent: to be read
  std::map<std::uint32_t, Assignment> followed_;
  base::Status last_;
  std::uint64_t refused_ = 0;
};

}  // namespace expanse::schedulers::slurm
