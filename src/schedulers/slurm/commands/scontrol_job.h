// `scontrol show job -d ID`: what only it tells of a job: which GPUs of which node it got, and the
// files that it reads and writes. Everything else comes from squeue, which keeps free text exact.
//
// The text cannot be read safely in general: a job's name or its wckey may hold newlines and then
// whole lines and records that look like Slurm's own. So the text must be one record, in which each
// line that Slurm prints once is there once, or it is refused: users can at most hide details of
// their own jobs. Paths come last in a record and are only ever opened with the rights of the job's
// user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "schedulers/slurm/text/tres.h"

namespace expanse::schedulers::slurm {

struct ScontrolJob {
  std::uint32_t job_id = 0;
  std::optional<base::WallTime> submitted;
  std::optional<std::uint32_t> restarts;
  bool batch = false;
  std::string batch_host;
  std::string command;  // path of the script, and its arguments in some versions
  std::string work_dir;
  std::string stdin_path;
  std::string stdout_path;  // patterns may be left in it: text/output_path.h
  std::string stderr_path;
  // Resources on groups of nodes that got the same.
  struct OnNodes {
    std::vector<std::string> nodes;
    std::string cpu_ids;  // "0-3,64-67"
    std::optional<std::uint64_t> memory_bytes;
    std::vector<Gres> gres;  // with indices where devices were given
  };
  std::vector<OnNodes> on_nodes;
};

// What scontrol printed of `job_id`, a raw id. Of an array it prints one record for each task when
// asked by the array's id: ask for a task as "<array>_<task>" then. Fails with slurm.job_not_found,
// or slurm.ambiguous for several records or one that users may have forged.
base::Result<ScontrolJob> ParseScontrolJob(std::string_view text, std::uint32_t job_id);

}  // namespace expanse::schedulers::slurm
