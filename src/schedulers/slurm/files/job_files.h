// Follows the output files of jobs and takes their scripts, on a thread of its own: a file server
// that hangs stops this thread and nothing else. Everything is read with the rights of the job's
// user (collect/files/user_files.h) and redacted before it leaves here.
//
// A job costs a few hundred bytes: no output is kept, the end of a file is read again when it has
// grown. Looks begin 10 s after the job was seen, get rarer while it runs, and come once more at
// its end; their cost is bounded as a share of one core, so with very many jobs they get rarer
// still. The files of one job are read by nobody else, and jobs do not wait for each other but on
// this thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/abandonable_thread.h"
#include "base/result.h"
#include "base/time.h"
#include "collect/files/user_files.h"
#include "collect/logs/tail_ring.h"
#include "collect/sources/source_bundle.h"
#include "evidence/records.h"
#include "schedulers/slurm/files/assignment_reader.h"
#include "schedulers/slurm/files/capture_choice.h"

namespace expanse::schedulers::slurm {

struct JobFilesOptions {
  CaptureSwitches switches;
  std::chrono::milliseconds first_look{10'000};
  std::chrono::milliseconds next_look{30'000};  // doubled from look to look, up to the longest
  std::chrono::milliseconds longest{300'000};
  std::chrono::milliseconds settle{2'000};  // from a job's end to the last look
  // Once more for files that were not there at the last look: network file systems remember for up
  // to a minute that there was none.
  std::chrono::milliseconds late_look{65'000};
  // Of one core, for looks at jobs that run; those at a job's end and its sources always happen.
  double cpu_share = 0.01;
  std::size_t result_bytes_per_second = 256U << 10;  // and so much of tails they may give
  std::chrono::milliseconds hangs_after{30'000};     // one look that takes longer: degraded health
  std::size_t max_jobs = 50'000;
  std::size_t max_requests = 20'000;             // waiting for the thread
  std::size_t max_script_bytes = 32U << 20;      // texts of scripts that wait to be bundled
  std::size_t max_result_bytes = 16U << 20;      // not taken yet; beyond it no file is looked at
  std::uint64_t scan_bytes_per_look = 1U << 20;  // searched for the first error
  std::uint64_t scan_bytes_at_end = 16U << 20;
  collect::TailOptions tail;
  collect::SourceLimits sources;
  // Null: the system's (LookUpUser). For tests.
  std::function<base::Result<collect::UserIdentity>(uid_t)> user;
  // A sampler's: jobs come from the controller's file, and Follow is not called.
  AssignmentReaderOptions assignments;
};

struct JobFilesRequest {
  evidence::ExecutionKey key;
  std::uint32_t job_id = 0;  // raw; only FileRouter asks
  uid_t uid = 0;
  std::string user;
  std::string account;
  std::string comment;
  // Absolute, patterns filled in; the same for both: one stream, "combined". Empty: no such file
  // (an interactive job), or not known yet.
  std::string stdout_path;
  std::string stderr_path;
  std::string working_directory;
  std::string command;  // as the scheduler writes it: the script's path or program, and arguments
  std::string script;   // the batch script's text as the scheduler keeps it; empty: none, unknown
  // The script's text is still being fetched: sources wait for it (Follow again), at most until the
  // job's end.
  bool script_pending = false;
  // Of the batch script, hex, where its text is somewhere else: sources are taken only if the file
  // that the command names is still that script, and only if there is more to them than that.
  std::string script_sha256;
  bool sources_taken = false;             // by an earlier life of the daemon: not again
  bool logs = true;                       // false: somebody else follows the output
  bool ended = false;                     // one look is all
  std::optional<base::WallTime> started;  // what was in an appended file before is not this job's
};

// Thread-safe; Follow, Ended and Take never block.
class JobFiles {
 public:
  static base::Result<std::unique_ptr<JobFiles>> Start(JobFilesOptions options, base::Clock& clock);
  ~JobFiles();  // Stop()

  // Begins to follow a job, or adds to what is known of one that is followed (empty fields change
  // nothing). False: not taken, too much is waiting; offer it again at a later look.
  [[nodiscard]] bool Follow(JobFilesRequest request);
  // The job has ended: a last look after a settle, then it is forgotten. Unknown keys are ignored.
  // False as for Follow.
  [[nodiscard]] bool Ended(const evidence::ExecutionKey& key);
  // The job is not to be looked at any more (its node's sampler does). False as for Follow.
  [[nodiscard]] bool Forget(const evidence::ExecutionKey& key);

  // LogTails and SourceBundles, oldest first, and ExecutionObservations that hold nothing but the
  // bundle's hash and capture_notes about this job's files ("logs: off for this job", "stdout: not
  // found here"). A large bundle that several executions share is given once; the others have its
  // hash and a note that says whose. What the sink refused goes back with PutBack.
  std::vector<evidence::Payload> Take(std::size_t max);
  void PutBack(std::vector<evidence::Payload> payloads);

  // Collector "job_files". Degraded with reason "no_permission" (the daemon may not take users'
  // rights), "hangs" (a file system does not answer), "behind" (looks are put off for long),
  // assign.* (the controller's file cannot be believed).
  evidence::HealthRow health() const;
  // Ends the thread, or leaves it to itself when it is stuck in a file system. At most 2 s.
  void Stop();

 private:
  class Impl;
  explicit JobFiles(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // shared with the thread, which may outlive us
  base::AbandonableThread thread_;
};

}  // namespace expanse::schedulers::slurm
