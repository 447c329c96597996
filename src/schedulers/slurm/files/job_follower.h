// What JobFiles does, without its thread: which job is looked at when, and what comes of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "schedulers/slurm/files/files_monitor.h"
#include "schedulers/slurm/files/job_files.h"
#include "schedulers/slurm/files/output_stream.h"
#include "schedulers/slurm/files/result_queue.h"
#include "schedulers/slurm/files/source_cache.h"
#include "schedulers/slurm/files/user_cache.h"

namespace expanse::schedulers::slurm {

// Not thread-safe: one thread makes all calls. Blocks in Step as file systems and the user data
// base do.
class JobFollower {
 public:
  // `cpu_time`: what the calling thread has used so far; null: of the system.
  JobFollower(const JobFilesOptions& options, base::Clock& clock, ResultQueue& results,
              FilesMonitor& monitor, std::function<base::Duration()> cpu_time = {});

  // `request.script` is not looked at: its text is `script`, null where there is none.
  void Follow(const JobFilesRequest& request, ScriptText script);
  void End(const std::string& identity);
  void Forget(const std::string& identity);

  // Looks that are due, for at most about 200 ms. True: there is more to do at once.
  bool Step(const std::stop_token& stop);
  std::size_t jobs() const { return jobs_.size(); }

 private:
  struct Job {
    evidence::ExecutionKey key;
    uid_t uid = 0;
    OutputStream out{"stdout"};
    OutputStream err{"stderr"};
    std::unique_ptr<SourceJob> sources;  // until they were taken
    bool script_pending = false;
    bool begun = false;  // the first time over: sources taken, old contents left out
    bool ended = false;
    std::uint8_t last_tries = 0;
    std::optional<base::WallTime> started;
    std::chrono::milliseconds interval{};
    std::optional<base::MonoTime> due;  // absent: in neither queue
    bool urgent = false;                // which one
    std::string bundle_hash;
    std::vector<std::string> notes;  // of what is off, and of the sources
    std::vector<std::string> told;   // all notes that were given
    bool tell = false;               // even if they are the same: there is a hash to give
  };
  using Queue = std::set<std::pair<base::MonoTime, Job*>>;

  void Update(Job& job, const JobFilesRequest& request, ScriptText script);
  void Schedule(Job& job, bool urgent, base::MonoTime at);
  void Unschedule(Job& job);
  void Erase(Job& job);
  Job* NextDue(base::MonoTime now);
  void Refill(base::MonoTime now);
  void Visit(Job& job, const std::stop_token& stop);
  // With the rights of the job's user; results go into `out`.
  void Read(Job& job, const collect::UserIdentity& user, bool final,
            std::vector<evidence::Payload>& out);
  // The script's text from the file that the command names; false: it is not what was submitted.
  bool FindScript(SourceJob& sources, const collect::FileOpener& open) const;
  void TakeSources(Job& job, const collect::FileOpener& open, std::vector<evidence::Payload>& out);
  // Nothing can be read of it; `give_up`: nor will its sources be.
  static void Refuse(Job& job, StreamTrouble trouble, bool give_up);
  std::optional<std::chrono::milliseconds> LookOnceMore(Job& job) const;
  void Finish(Job& job);
  void Continue(Job& job);
  void AddNotes(Job& job, bool final, std::vector<evidence::Payload>& out);
  void Publish(base::MonoTime now);

  const JobFilesOptions& options_;
  base::Clock& clock_;
  ResultQueue& results_;
  FilesMonitor& monitor_;
  std::function<base::Duration()> cpu_time_;
  UserCache users_;
  SourceCache sources_;
  std::unordered_map<std::string, std::unique_ptr<Job>> jobs_;  // by identity
  Queue urgent_;                                                // jobs that began or ended
  Queue routine_;                                               // jobs that run
  // What routine looks may still cost; refilled with time.
  base::MonoTime refilled_{};
  double cpu_left_s_ = 0;
  double bytes_left_ = 0;
  FilesMonitor::Figures figures_;
};

}  // namespace expanse::schedulers::slurm
