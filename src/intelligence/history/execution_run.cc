#include "intelligence/history/execution_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/text.h"

namespace expanse::intelligence::history {
namespace {

using evidence::Execution;
using evidence::Outcome;
using predict::Ending;

// Slurm's states, Kubernetes' and Nomad's reasons.
constexpr auto kInfrastructure = std::to_array<std::string_view>(
    {"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "LAUNCH_FAILED", "REVOKED", "REQUEUED", "RECONFIG_FAIL",
     "Preempted", "Preempting", "PreemptionByScheduler", "NodeLost", "NodeShutdown", "NodeAffinity",
     "DeletionByTaintManager", "Evicted", "Shutdown", "lost"});

bool IsInfrastructure(std::string_view state) {
  // "CANCELLED by 1000", "NODE_FAIL+": the word counts.
  const std::string_view word = state.substr(0, state.find_first_of(" +,"));
  return std::ranges::find(kInfrastructure, word) != kInfrastructure.end();
}

double Seconds(base::Duration duration) { return std::chrono::duration<double>(duration).count(); }

template <typename T>
std::optional<double> AsDouble(const std::optional<T>& first, const std::optional<T>& other = {}) {
  const auto& value = first ? first : other;
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

// Zero limits mean "no limit" or "all of the node", which is no amount.
template <typename T>
std::optional<double> Limit(const std::optional<T>& allocated, const std::optional<T>& requested) {
  for (const auto& value : {allocated, requested}) {
    if (value && *value > 0) return static_cast<double>(*value);
  }
  return std::nullopt;
}

predict::Amounts AppliedLimits(const Execution& e) {
  predict::Amounts amounts;
  amounts.cpu_cores = Limit(e.allocated.cpu_cores, e.requested.cpu_cores);
  amounts.memory_bytes = Limit(e.allocated.memory_bytes, e.requested.memory_bytes);
  amounts.walltime_s = Limit(e.allocated.walltime_s, e.requested.walltime_s);
  amounts.gpu_count = AsDouble(e.allocated.gpu_count, e.requested.gpu_count);
  return amounts;
}

std::optional<double> RuntimeOf(const Execution& e) {
  if (!e.started_at || !e.ended_at || *e.ended_at < *e.started_at) return std::nullopt;
  const double all = Seconds(*e.ended_at - *e.started_at);
  return std::max(0.0, all - static_cast<double>(e.suspended_s.value_or(0)));
}

// "4711_12": the twelfth task.
std::optional<double> ArrayIndexOf(const Execution& e) {
  if (e.source_type != evidence::SourceType::kSlurm) return std::nullopt;
  const std::size_t bar = e.native_id.find('_');
  if (bar == std::string::npos) return std::nullopt;
  const auto index = base::ParseUnsignedDigits(std::string_view(e.native_id).substr(bar + 1));
  return AsDouble(index);
}

std::string Label(const Execution& e, const char* name) {
  const auto at = e.labels.find(name);
  return at == e.labels.end() ? std::string() : at->second;
}

bool IsInterpreter(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);
  return name.starts_with("python") || name == "bash" || name == "sh" || name == "Rscript" ||
         name == "julia" || name == "perl" || name == "node";
}

}  // namespace

bool TellsSomething(const Execution& execution) { return evidence::IsTerminal(execution.status); }

Ending EndingOf(const Execution& e) {
  if (e.outcome == Outcome::kSuccess) return Ending::kSuccess;
  if (IsInfrastructure(e.native_state) || IsInfrastructure(e.native_reason))
    return Ending::kInfrastructure;
  switch (e.outcome) {
    case Outcome::kOutOfMemory:
      return Ending::kOutOfMemory;
    case Outcome::kTimeout:
      return Ending::kTimeout;
    case Outcome::kCancelled:
      return Ending::kCancelled;
    case Outcome::kFailure:
      return e.used.oom_kills.value_or(0) > 0 ? Ending::kOutOfMemory : Ending::kFailure;
    case Outcome::kSuccess:
    case Outcome::kUnspecified:
    case Outcome::kUnknown:
      break;
  }
  if (e.status == evidence::ExecutionStatus::kSucceeded) return Ending::kSuccess;
  if (e.status == evidence::ExecutionStatus::kCancelled) return Ending::kCancelled;
  if (e.status == evidence::ExecutionStatus::kFailed) return Ending::kFailure;
  return Ending::kUnknown;
}

std::vector<std::string> ArgumentsOf(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  if (command.size() == 1) {
    words.clear();
    for (const std::string_view word : base::SplitSpaces(command[0])) words.emplace_back(word);
  }
  std::size_t script = 0;
  // Of "python -u train.py": the first word behind the interpreter that is no option.
  if (!words.empty() && IsInterpreter(words[0])) {
    for (script = 1; script < words.size() && words[script].starts_with('-'); ++script) {
    }
  }
  words.erase(words.begin(),
              words.begin() + static_cast<std::ptrdiff_t>(std::min(script + 1, words.size())));
  return words;
}

std::string OwnerOf(const Execution& execution) {
  if (const std::string job = Label(execution, "nomad.job"); !job.empty())
    return OwnerName("nomad", job, Label(execution, "nomad.group"));
  const std::string kind = Label(execution, "owner.kind");
  if (kind.empty()) return {};
  return OwnerName(kind, Label(execution, "owner.namespace"), Label(execution, "owner.name"));
}

IndexedRun ToIndexedRun(const Execution& e) {
  ArgumentsPrint arguments = MakeArgumentsPrint(ArgumentsOf(e.command));
  IndexedRun indexed{.execution_id = e.execution_id,
                     .compute_id = e.compute_id,
                     .source_type = e.source_type,
                     .user = e.user,
                     .job_name = e.name,
                     .owner = OwnerOf(e),
                     .arguments_hash = std::move(arguments.hash),
                     .arguments_shape = std::move(arguments.shape),
                     .numbers = std::move(arguments.numbers),
                     .array_index = ArrayIndexOf(e),
                     .run = {}};
  predict::Run& run = indexed.run;
  run.execution_id = e.execution_id;
  run.native_id = e.native_id;
  run.ending = EndingOf(e);
  const auto known = e.submitted_at ? e.submitted_at : e.started_at ? e.started_at : e.ended_at;
  run.submitted_micros = known ? base::ToMicros(*known) : 0;
  run.requested = AppliedLimits(e);
  run.runtime_s = RuntimeOf(e);
  run.memory_peak_bytes = AsDouble(e.used.memory_peak_bytes);
  run.memory_is_floor = run.memory_peak_bytes && e.used.memory_peak_basis != "cgroup_peak";
  if (e.used.cpu_s && run.runtime_s && *run.runtime_s > 0)
    run.cpu_mean_cores = *e.used.cpu_s / *run.runtime_s;
  run.gpu_type = e.allocated.gpu_type.empty() ? e.requested.gpu_type : e.allocated.gpu_type;
  return indexed;
}

}  // namespace expanse::intelligence::history
