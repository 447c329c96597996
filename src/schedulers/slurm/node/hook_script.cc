#include "schedulers/slurm/node/hook_script.h"

#include <fmt/format.h>

#include <algorithm>

namespace expanse::schedulers::slurm {
namespace {

// Options go into single quotes. What could end those, or a line, is refused rather than escaped:
// no installation needs it.
bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+@: ").find(c) != std::string_view::npos;
  });
}

base::Status CheckPath(std::string_view what, std::string_view path) {
  if (path.starts_with('/') && IsPlain(path)) return {};
  return base::Fail(base::Code::kInvalidArgument, "hook.option",
                    fmt::format("{} must be an absolute path of letters, digits, blanks and "
                                "/._-+@: to stand in a hook",
                                what));
}

base::Status CheckWord(std::string_view what, std::string_view word) {
  if (IsPlain(word) && word.find_first_of("/ :") == std::string_view::npos &&
      !word.starts_with('-')) {
    return {};
  }
  return base::Fail(base::Code::kInvalidArgument, "hook.option",
                    fmt::format("{} cannot stand in a hook", what));
}

constexpr std::string_view kPromise =
    R"sh(# It must neither delay nor fail a job: it always succeeds, waits for nothing and touches nothing but
# this node's own memory. What is wrong with it is seen in the health of the compute, not here.
trap 'exit 0' EXIT
trap '' PIPE XFSZ
)sh";

// The event directory is below one of root's, and may itself be another user's: root must not be
// led by a link in it. noclobber makes the shell open a new file with O_EXCL, which follows none.
constexpr std::string_view kDirectories = R"sh(exec </dev/null >/dev/null 2>&1
export PATH=/usr/bin:/bin:/usr/sbin:/sbin
umask 022
set -C
hooks=$run/hooks

case $SLURM_JOB_ID in '' | 0* | *[!0-9]*) exit ;; esac
make() {
  mkdir -m "$1" "$2" && [ -n "$owner" ] && chown -h "$owner" "$2"
}
[ -d "$hooks" ] || {
  mkdir -p -m 755 "$run"
  make 700 "$hooks"
}
)sh";

// One write of one small file, made by the shell itself. The names are a fixed set, so that a node
// where nobody takes events does not fill up: what comes first stays. Fields end in NUL, which no
// variable can hold; the last one tells a reader that the event is whole.
constexpr std::string_view kEvent = R"sh(
node=$SLURMD_NODENAME
case $node in *[!A-Za-z0-9._-]*) node=other ;; esac
nodes=${SLURM_JOB_NODELIST:-$SLURM_NODELIST}
[ ${#nodes} -le 16384 ] || nodes=
printf '%s\0' 'expanse-hook 1' "$kind" \
  "SLURM_JOB_ID=$SLURM_JOB_ID" "SLURM_JOB_SLUID=$SLURM_JOB_SLUID" \
  "SLURM_JOB_UID=$SLURM_JOB_UID" "SLURM_JOB_USER=$SLURM_JOB_USER" \
  "SLURM_CLUSTER_NAME=$SLURM_CLUSTER_NAME" "SLURMD_NODENAME=$SLURMD_NODENAME" \
  "SLURM_JOB_PARTITION=$SLURM_JOB_PARTITION" "SLURM_JOB_NODELIST=$nodes" \
  "SLURM_ARRAY_JOB_ID=$SLURM_ARRAY_JOB_ID" "SLURM_ARRAY_TASK_ID=$SLURM_ARRAY_TASK_ID" \
  "SLURM_HET_JOB_ID=$SLURM_HET_JOB_ID" "SLURM_HET_JOB_OFFSET=$SLURM_HET_JOB_OFFSET" \
  "SLURM_JOB_RESTART_COUNT=${SLURM_JOB_RESTART_COUNT:-$SLURM_RESTART_COUNT}" \
  "SLURM_JOB_EXIT_CODE2=$SLURM_JOB_EXIT_CODE2" "SLURM_JOB_EXIT_CODE=$SLURM_JOB_EXIT_CODE" \
  "SLURM_JOB_START_TIME=$SLURM_JOB_START_TIME" "SLURM_JOB_GPUS=$SLURM_JOB_GPUS" \
  "CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES" end \
  >"$hooks/$kind.$((SLURM_JOB_ID % slots)).$node"
[ -d "$run/agent" ] || make 755 "$run/agent"
)sh";

// setsid returns only after the new session exists: Slurm kills what is left of a Prolog's process
// group when it ends. The program is started by a process of that session, in the background: it
// lies on the shared file system, and one that hangs must not hold the job. Nor may it be joined by
// another one with each job that begins or ends: who was started last is noted with the time that
// it began (fields 1 and 22 of /proc/PID/stat), so that its pid is taken for nobody else's.
constexpr std::string_view kStartSampler = R"sh(
sampler_is_alive() {
  [ -f "$hooks/sampler" ] || return
  read -r pid running role <"$hooks/sampler"
  [ "$running" = "$version" ] || [ "$role" = controller ] || return
  case $pid in '' | *[!0-9]*) return 1 ;; esac
  read -r name <"/proc/$pid/comm" && [ "$name" = expanse-daemon ]
}
sampler_is_starting() {
  [ -f "$run/starting" ] || return
  read -r pid began starting <"$run/starting"
  [ "$starting" = "$version" ] || return
  case $pid in '' | *[!0-9]*) return 1 ;; esac
  read -r stat <"/proc/$pid/stat" || return
  set -- ${stat##*) }
  [ $# -ge 20 ] && shift 19 && [ "$1" = "$began" ]
}
sampler_is_alive || sampler_is_starting ||
  setsid sh -c 'cd / || exit
    version=$1 && shift
    env -i PATH="$PATH" "$@" &
    pid=$! && read -r stat <"/proc/$pid/stat" && set -- ${stat##*) } && shift 19 &&
      echo "$pid $1 $version" >"$0"' "$run/starting" "$version" "$prefix/bin/expanse-daemon" \
    sampler --prefix "$prefix" --run-dir "$run" ${owner:+--user "$owner"}
)sh";

// Every line that a TaskProlog prints is an order to slurmstepd. It runs as the job's user, so it
// looks at two files that only the daemon's user can make, and not at the shared file system.
constexpr std::string_view kTaskProlog = R"sh(exec </dev/null 2>/dev/null
[ -f "$run/agent/ready" ] && [ ! -e "$run/agent/disabled" ] || exit
[ "$EXPANSE_PROFILING_AGENT_ENABLE" != 0 ] && [ -z "$CUDA_INJECTION64_PATH" ] || exit
printf 'export CUDA_INJECTION64_PATH=%s\n' "$prefix/$library"
)sh";

}  // namespace

base::Result<HookScriptKind> ParseHookScriptKind(std::string_view name) {
  if (name == "prolog") return HookScriptKind::kProlog;
  if (name == "epilog") return HookScriptKind::kEpilog;
  if (name == "task-prolog") return HookScriptKind::kTaskProlog;
  return base::Fail(base::Code::kInvalidArgument, "hook.kind",
                    "a hook is one of prolog, epilog and task-prolog");
}

base::Result<std::string> MakeHookScript(HookScriptKind kind, const HookScriptOptions& options) {
  EXPANSE_RETURN_IF_ERROR(CheckPath("the prefix", options.prefix));
  EXPANSE_RETURN_IF_ERROR(CheckPath("the run directory", options.run_directory));
  EXPANSE_RETURN_IF_ERROR(CheckWord("the version", options.version));
  EXPANSE_RETURN_IF_ERROR(CheckWord("the owner", options.owner));
  if (kind == HookScriptKind::kTaskProlog) {
    return fmt::format(
        "#!/bin/sh\n"
        "# Lets Expanse's capture agent into CUDA programs of this task, where it is installed. "
        "Made "
        "by\n# `expanse-daemon hooks task-prolog`, version {}.\n"
        "{}run='{}' prefix='{}' library='{}'\n{}",
        options.version, kPromise, options.run_directory, options.prefix, kAgentLibrary,
        kTaskProlog);
  }
  const std::string_view name = kind == HookScriptKind::kProlog ? "prolog" : "epilog";
  return fmt::format(
      "#!/bin/sh\n"
      "# Tells Expanse that a job {} on this node. Made by `expanse-daemon hooks {}`, version {}.\n"
      "{}kind={} slots={} version='{}' owner='{}'\nrun='{}' prefix='{}'\n{}{}{}",
      kind == HookScriptKind::kProlog ? "begins" : "has ended", name, options.version, kPromise,
      name, kHookSlots, options.version, options.owner, options.run_directory, options.prefix,
      kDirectories, kEvent, options.start_sampler ? kStartSampler : "");
}

}  // namespace expanse::schedulers::slurm
