// Between the runs of the table and the reader of their files: asks for batch scripts, hands jobs
// over once they run, and tells of their ends. Nothing here touches a file. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/records.h"
#include "schedulers/slurm/files/file_router.h"
#include "schedulers/slurm/files/job_files.h"
#include "schedulers/slurm/job.h"
#include "schedulers/slurm/job_table.h"
#include "schedulers/slurm/outgoing.h"
#include "schedulers/slurm/reports.h"
#include "schedulers/slurm/script_task.h"

namespace expanse::schedulers::slurm {

class RunFiles {
 public:
  // `sampler_of`: the host whose sampler may follow the files of a job that begins on a node;
  // empty: there is none. Both others outlive it.
  RunFiles(JobFiles& files, FileRouter& router,
           std::function<std::string(std::string_view node)> sampler_of)
      : files_(files), router_(router), sampler_of_(std::move(sampler_of)) {}

  // A run runs or has ended: the first time, or something about it has changed.
  void Seen(RunId id, const evidence::ExecutionKey& key, TrackedRun& run, const Job& job);
  void Ended(const evidence::ExecutionKey& key);

  // The next script to be read, if any; one is out at a time.
  std::optional<ScriptTask> NextScript();
  // It was read, or not.
  void TakeScript(ScriptDone done);

  // What was read of files, into the outbox; as much as fits a look. Marks bundled runs.
  void Pass(JobTable& table, Outgoing& outgoing);
  // Offers again what JobFiles did not take.
  void Retry();

  std::size_t scripts_waiting() const { return scripts_.size(); }
  std::uint64_t lost() const { return lost_; }  // requests for which there was no room

 private:
  // A job whose script is wanted. The whole request goes with it: JobFiles may have forgotten the
  // job when the script comes, and must never guess whose rights to read with.
  struct Wanted {
    ScriptTask task;
    JobFilesRequest request;
    std::string node;  // that runs the batch script
  };
  void Follow(JobFilesRequest request, std::string node);
  void Offer(std::function<bool()> request);

  JobFiles& files_;
  FileRouter& router_;
  std::function<std::string(std::string_view node)> sampler_of_;
  std::deque<Wanted> scripts_;
  std::optional<Wanted> script_out_;  // that is being read
  std::deque<std::function<bool()>> retries_;
  std::uint64_t lost_ = 0;
};

}  // namespace expanse::schedulers::slurm
