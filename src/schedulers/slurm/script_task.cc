#include "schedulers/slurm/script_task.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kMaxScript = 4U << 20;

}  // namespace

base::Result<std::string> ReadKeptScript(std::string_view location, std::uint32_t script_id) {
  const std::string path =
      fmt::format("{}/hash.{}/job.{}/script", location, script_id % 10, script_id);
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return base::FailErrno(errno, "open " + path);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return base::FailErrno(errno, "stat " + path);
  if (!S_ISREG(info.st_mode)) return base::FailErrno(EINVAL, path + " is no file");
  auto script = base::ReadFd(file.get(), kMaxScript);
  // slurmctld writes the string with its terminator.
  if (script) script->erase(script->find_last_not_of('\0') + 1);
  return script;
}

void RunScriptTask(const ScriptTask& task, CommandRunner& runner, Mailbox& mailbox,
                   const std::stop_token& stop) {
  ScriptDone done{.job_id = task.job_id,
                  .submitted_s = task.submitted_s,
                  .status = {},
                  .cost = {},
                  .script = {}};
  base::Result<std::string> script =
      base::Fail(base::Code::kPermissionDenied, "slurm.state_unreadable",
                 "slurmctld's state directory is not known");
  if (!task.state_save_location.empty())
    script = ReadKeptScript(task.state_save_location, task.script_id);
  if (script) {
    done.script = *std::move(script);
  } else if (script.error().code == base::Code::kNotFound) {
    // Readable, and there is none: the job has no script, or slurmctld has forgotten the job.
    done.status = base::Fail(base::Code::kNotFound, "slurm.no_script", "there is no batch script");
  } else if (task.may_ask) {
    CommandOutcome outcome =
        runner.Run({.program = Program::kScontrol,
                    .arguments = {"write", "batch_script", std::to_string(task.script_id), "-"},
                    .max_output = kMaxScript},
                   stop);
    done.status = std::move(outcome.status);
    done.cost = outcome.cost;
    done.script = std::move(outcome.out);
  } else {
    done.status = std::unexpected(std::move(script.error()));
  }
  const std::size_t bytes = done.script.size();
  if (!mailbox.PutWaiting(done, bytes, stop, std::chrono::milliseconds(10'000))) {
    done.script.clear();
    done.status = base::Fail(base::Code::kResourceExhausted, "slurm.behind", "not taken in time");
    mailbox.PutDone(std::move(done));
  }
}

}  // namespace expanse::schedulers::slurm
