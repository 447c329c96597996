#include "evidence/execution.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/crypto.h"

namespace expanse::evidence {
namespace {

constexpr std::array<std::string_view, 5> kSources = {"", "slurm", "kubernetes", "nomad", "host"};
constexpr std::array<std::string_view, 7> kStatuses = {
    "", "queued", "running", "succeeded", "failed", "cancelled", "unknown"};
constexpr std::array<std::string_view, 7> kOutcomes = {
    "", "success", "failure", "cancelled", "timeout", "out_of_memory", "unknown"};

constexpr std::string_view kStepsLeftOut =
    "too many steps: those that failed and the first ones are kept";

template <typename Enum, std::size_t N>
std::optional<Enum> ParseName(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 1; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template <typename T>
void Take(std::optional<T>& known, const std::optional<T>& seen) {
  if (seen) known = seen;
}
template <typename T>
void TakeNonEmpty(T& known, const T& seen) {
  if (!seen.empty()) known = seen;
}

void MergeResources(Resources& known, const Resources& seen) {
  Take(known.cpu_cores, seen.cpu_cores);
  Take(known.memory_bytes, seen.memory_bytes);
  Take(known.gpu_count, seen.gpu_count);
  TakeNonEmpty(known.gpu_type, seen.gpu_type);
  Take(known.node_count, seen.node_count);
  Take(known.task_count, seen.task_count);
  Take(known.walltime_s, seen.walltime_s);
  TakeNonEmpty(known.tres, seen.tres);
}

// How much a memory peak of this basis is worth; one of an unknown basis least.
std::size_t BasisStrength(std::string_view basis) {
  constexpr std::array<std::string_view, 4> kWeakestFirst = {"rss", "rusage", "sampled",
                                                             "cgroup_peak"};
  const auto* const found = std::find(kWeakestFirst.begin(), kWeakestFirst.end(), basis);
  return found == kWeakestFirst.end() ? 0
                                      : 1 + static_cast<std::size_t>(found - kWeakestFirst.begin());
}

void MergeUsage(Usage& known, const Usage& seen) {
  Take(known.cpu_s, seen.cpu_s);
  Take(known.cpu_user_s, seen.cpu_user_s);
  Take(known.cpu_system_s, seen.cpu_system_s);
  if (seen.memory_peak_bytes &&
      (!known.memory_peak_bytes ||
       BasisStrength(seen.memory_peak_basis) >= BasisStrength(known.memory_peak_basis))) {
    known.memory_peak_bytes = seen.memory_peak_bytes;
    known.memory_peak_basis = seen.memory_peak_basis;
  }
  Take(known.io_read_bytes, seen.io_read_bytes);
  Take(known.io_write_bytes, seen.io_write_bytes);
  Take(known.oom_kills, seen.oom_kills);
}

// How far along a run is; it never goes back within one restart count.
int Progress(ExecutionStatus status) {
  switch (status) {
    case ExecutionStatus::kUnspecified:
      return 0;
    case ExecutionStatus::kQueued:
      return 1;
    case ExecutionStatus::kRunning:
    case ExecutionStatus::kUnknown:
      return 2;
    case ExecutionStatus::kSucceeded:
    case ExecutionStatus::kFailed:
    case ExecutionStatus::kCancelled:
      return 3;
  }
  return 0;
}

void MergeStep(Step& known, const Step& seen) {
  TakeNonEmpty(known.name, seen.name);
  if (Progress(seen.status) >= Progress(known.status)) {
    if (seen.status != ExecutionStatus::kUnspecified) known.status = seen.status;
    TakeNonEmpty(known.native_state, seen.native_state);
    Take(known.exit_code, seen.exit_code);
    Take(known.signal, seen.signal);
  }
  Take(known.started_at, seen.started_at);
  Take(known.ended_at, seen.ended_at);
  Take(known.node_count, seen.node_count);
  Take(known.task_count, seen.task_count);
  MergeUsage(known.used, seen.used);
  Take(known.memory_peak_task_bytes, seen.memory_peak_task_bytes);
  TakeNonEmpty(known.tres_used, seen.tres_used);
}

bool IsNumbered(const Step& step) {
  return !step.id.empty() && step.id.front() >= '0' && step.id.front() <= '9';
}

// "2" before "10" before "10+1"; words before numbers.
bool ComesBefore(const Step& a, const Step& b) {
  const auto digits = [](const Step& step) {
    return std::min(step.id.find_first_not_of("0123456789"), step.id.size());
  };
  if (IsNumbered(a) != IsNumbered(b)) return IsNumbered(b);
  if (IsNumbered(a) && digits(a) != digits(b)) return digits(a) < digits(b);
  return a.id < b.id;
}

void MergeSteps(std::vector<Step>& known, const std::vector<Step>& seen) {
  if (seen.empty()) return;
  std::sort(known.begin(), known.end(), ComesBefore);
  std::vector<Step> fresh;
  for (const Step& step : seen) {
    const auto found = std::lower_bound(known.begin(), known.end(), step, ComesBefore);
    if (found != known.end() && found->id == step.id) {
      MergeStep(*found, step);
    } else {
      fresh.push_back(step);
    }
  }
  known.insert(known.end(), std::make_move_iterator(fresh.begin()),
               std::make_move_iterator(fresh.end()));
  std::sort(known.begin(), known.end(), ComesBefore);
}

// Forgets what belonged to the run before a requeue.
void StartOver(Execution& known, std::uint32_t restart_count) {
  known.restart_count = restart_count;
  known.status = ExecutionStatus::kUnspecified;
  known.outcome = Outcome::kUnspecified;
  known.native_state.clear();
  known.native_reason.clear();
  known.exit_code.reset();
  known.signal.reset();
  known.eligible_at.reset();
  known.expected_start_at.reset();
  known.started_at.reset();
  known.ended_at.reset();
  known.suspended_s.reset();
  known.used = {};
  known.steps.clear();
}

// It was guessed too early: the run goes on.
void ForgetGuessedEnd(Execution& known) {
  known.status = ExecutionStatus::kRunning;
  known.outcome = Outcome::kUnspecified;
  known.native_reason.clear();
  known.ended_at.reset();
  known.capture_notes.clear();
}

// Where a run stands and how it got there; taken over as a whole or not at all.
void MergeState(Execution& known, const Execution& seen) {
  const bool says_status = seen.status != ExecutionStatus::kUnspecified;
  if (says_status && Progress(seen.status) < Progress(known.status)) return;
  // An older word of its running, told late, is no reason to doubt the end that was guessed since.
  if (known.status == ExecutionStatus::kUnknown && known.ended_at &&
      seen.status == ExecutionStatus::kRunning) {
    return;
  }
  if (seen.status == ExecutionStatus::kQueued) known.expected_start_at = seen.expected_start_at;
  // Why it waited is no reason of what came after.
  if (known.status == ExecutionStatus::kQueued && Progress(seen.status) > Progress(known.status))
    known.native_reason.clear();
  if (says_status) known.status = seen.status;
  if (seen.outcome != Outcome::kUnspecified) known.outcome = seen.outcome;
  TakeNonEmpty(known.native_state, seen.native_state);
  TakeNonEmpty(known.native_reason, seen.native_reason);
  // Slurm's accounting shows exit codes from 128 up without the 128.
  const bool is_cut = seen.lossy_text && known.exit_code && seen.exit_code &&
                      *known.exit_code == *seen.exit_code + 128;
  if (!is_cut) Take(known.exit_code, seen.exit_code);
  Take(known.signal, seen.signal);
}

bool HasFreeText(const Execution& e) {
  return !e.name.empty() || !e.comment.empty() || !e.working_directory.empty() ||
         !e.command.empty();
}

void MergeFreeText(Execution& known, const Execution& seen) {
  if (!HasFreeText(seen)) return;
  const bool fill_only = seen.lossy_text && !known.lossy_text;
  known.lossy_text = seen.lossy_text && (known.lossy_text || !HasFreeText(known));
  const auto take = [fill_only](auto& mine, const auto& theirs) {
    if (!fill_only || mine.empty()) TakeNonEmpty(mine, theirs);
  };
  take(known.name, seen.name);
  take(known.comment, seen.comment);
  take(known.working_directory, seen.working_directory);
  take(known.command, seen.command);
}

void MergeNotes(std::vector<std::string>& known, const std::vector<std::string>& seen) {
  for (const std::string& note : seen) {
    if (known.size() >= kMaxNotes) return;
    if (std::find(known.begin(), known.end(), note) == known.end()) known.push_back(note);
  }
}

// What differs from run to run of a requeued submission.
void MergeRun(Execution& known, const Execution& seen) {
  // An observation without a status may not know the count either; one with a status does.
  if (seen.restart_count < known.restart_count && seen.status != ExecutionStatus::kUnspecified)
    return;
  if (seen.restart_count > known.restart_count) StartOver(known, seen.restart_count);
  MergeState(known, seen);
  if (Progress(known.status) <= Progress(ExecutionStatus::kQueued)) {
    Take(known.expected_start_at, seen.expected_start_at);
  } else {
    known.expected_start_at.reset();
  }
  Take(known.eligible_at, seen.eligible_at);
  Take(known.started_at, seen.started_at);
  Take(known.ended_at, seen.ended_at);
  Take(known.suspended_s, seen.suspended_s);
  MergeResources(known.allocated, seen.allocated);
  MergeUsage(known.used, seen.used);
  MergeSteps(known.steps, seen.steps);
}

}  // namespace

std::string_view Name(SourceType type) { return kSources[static_cast<std::size_t>(type)]; }
std::string_view Name(ExecutionStatus status) {
  return kStatuses[static_cast<std::size_t>(status)];
}
std::string_view Name(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::optional<SourceType> ParseSourceType(std::string_view name) {
  return ParseName<SourceType>(kSources, name);
}
std::optional<ExecutionStatus> ParseStatus(std::string_view name) {
  return ParseName<ExecutionStatus>(kStatuses, name);
}
std::optional<Outcome> ParseOutcome(std::string_view name) {
  return ParseName<Outcome>(kOutcomes, name);
}

bool IsTerminal(ExecutionStatus status) {
  return status == ExecutionStatus::kSucceeded || status == ExecutionStatus::kFailed ||
         status == ExecutionStatus::kCancelled;
}

std::string ExecutionId(std::string_view compute_id, const ExecutionKey& key) {
  std::string input(compute_id);
  input += '\0';
  input += Name(key.source_type);
  input += '\0';
  input += key.identity;
  std::string raw = base::Sha256(input).substr(0, 16);
  raw[6] = static_cast<char>(0x80 | (raw[6] & 0x0F));
  raw[8] = static_cast<char>(0x80 | (raw[8] & 0x3F));
  std::string text = base::HexEncode(raw);
  for (std::size_t dash : {20U, 16U, 12U, 8U}) text.insert(dash, 1, '-');
  return text;
}

bool BoundSteps(std::vector<Step>* steps, std::size_t most, std::vector<std::string>* notes) {
  if (steps->size() <= most) return false;
  const auto rank = [](const Step& step) {
    const bool bad = step.status == ExecutionStatus::kFailed ||
                     step.status == ExecutionStatus::kCancelled ||
                     step.exit_code.value_or(0) != 0 || step.signal.value_or(0) != 0;
    return bad ? 0 : IsNumbered(step) ? 2 : 1;
  };
  std::vector<std::size_t> order(steps->size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(rank((*steps)[a]), a) < std::pair(rank((*steps)[b]), b);
  });
  order.resize(most);
  std::sort(order.begin(), order.end());
  std::vector<Step> kept;
  kept.reserve(most);
  for (const std::size_t i : order) kept.push_back(std::move((*steps)[i]));
  *steps = std::move(kept);
  if (std::find(notes->begin(), notes->end(), kStepsLeftOut) == notes->end())
    notes->emplace_back(kStepsLeftOut);
  return true;
}

Execution Merge(Execution known, const Execution& seen) {
  // A Slurm run has an identity of its own, and accounting before Slurm 23 does not tell the count.
  if (seen.source_type == SourceType::kSlurm && known.restart_count != seen.restart_count) {
    Execution same = seen;
    known.restart_count = same.restart_count = std::max(known.restart_count, seen.restart_count);
    return Merge(std::move(known), same);
  }
  const bool same_run = seen.restart_count == known.restart_count;
  // A guess (its end was not seen, so it was made up) gives way to what was seen, whichever is
  // first.
  const bool is_guess =
      same_run && seen.status == ExecutionStatus::kUnknown && IsTerminal(known.status);
  if (same_run && known.status == ExecutionStatus::kUnknown && IsTerminal(seen.status)) {
    known.native_reason.clear();
    known.capture_notes.clear();
  }
  if (same_run && known.status == ExecutionStatus::kUnknown && known.ended_at &&
      seen.status == ExecutionStatus::kRunning && seen.updated_at > known.updated_at) {
    ForgetGuessedEnd(known);
  }
  if (!is_guess) MergeRun(known, seen);
  if (seen.source_type != SourceType::kUnspecified) known.source_type = seen.source_type;
  TakeNonEmpty(known.native_id, seen.native_id);
  TakeNonEmpty(known.parent_native_id, seen.parent_native_id);
  MergeFreeText(known, seen);
  TakeNonEmpty(known.user, seen.user);
  TakeNonEmpty(known.account, seen.account);
  TakeNonEmpty(known.queue, seen.queue);
  TakeNonEmpty(known.qos, seen.qos);
  TakeNonEmpty(known.nodes, seen.nodes);
  // Observations are bounded each; labels alone add up, and a producer could grow them for ever.
  for (const auto& [key, value] : seen.labels) {
    if (known.labels.size() < kMaxLabels || known.labels.contains(key)) known.labels[key] = value;
  }
  Take(known.submitted_at, seen.submitted_at);
  MergeResources(known.requested, seen.requested);
  TakeNonEmpty(known.stdout_path, seen.stdout_path);
  TakeNonEmpty(known.stderr_path, seen.stderr_path);
  TakeNonEmpty(known.bundle_hash, seen.bundle_hash);
  if (!is_guess) MergeNotes(known.capture_notes, seen.capture_notes);
  BoundSteps(&known.steps, kMaxSteps, &known.capture_notes);
  known.updated_at = std::max(known.updated_at, seen.updated_at);  // an absent one is the smallest
  return known;
}

}  // namespace expanse::evidence
