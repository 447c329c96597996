// One run of a workload as everybody between collector and store sees it. Plain data; protobuf
// stays at the edges (evidence/wire.h). An absent optional is "unknown", never zero.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace expanse::evidence {

enum class SourceType : std::uint8_t { kUnspecified, kSlurm, kKubernetes, kNomad, kHost };
enum class ExecutionStatus : std::uint8_t {
  kUnspecified,
  kQueued,
  kRunning,
  kSucceeded,
  kFailed,
  kCancelled,
  kUnknown
};
enum class Outcome : std::uint8_t {
  kUnspecified,
  kSuccess,
  kFailure,
  kCancelled,
  kTimeout,
  kOutOfMemory,
  kUnknown
};

// Command-line spellings: "slurm", "failed", "out_of_memory". Unspecified is "".
std::string_view Name(SourceType type);
std::string_view Name(ExecutionStatus status);
std::string_view Name(Outcome outcome);
std::optional<SourceType> ParseSourceType(std::string_view name);
std::optional<ExecutionStatus> ParseStatus(std::string_view name);
std::optional<Outcome> ParseOutcome(std::string_view name);
// True for succeeded, failed and cancelled: nothing further happens to this run.
bool IsTerminal(ExecutionStatus status);

struct Resources {
  std::optional<double> cpu_cores;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint32_t> gpu_count;
  std::string gpu_type;
  std::optional<std::uint32_t> node_count;
  std::optional<std::uint32_t> task_count;
  std::optional<std::int64_t> walltime_s;
  std::string tres;  // as the scheduler writes it
  bool operator==(const Resources&) const = default;
};

struct Usage {
  std::optional<double> cpu_s;
  std::optional<double> cpu_user_s;
  std::optional<double> cpu_system_s;
  std::optional<std::uint64_t> memory_peak_bytes;
  // "cgroup_peak", "sampled", "rusage", "rss": the strongest first; see Merge.
  std::string memory_peak_basis;
  std::optional<std::uint64_t> io_read_bytes;
  std::optional<std::uint64_t> io_write_bytes;
  std::optional<std::uint64_t> oom_kills;
  bool operator==(const Usage&) const = default;
};

// A part of a run that the scheduler starts and accounts for by itself: a Slurm job step.
struct Step {
  std::string id;  // as the scheduler writes it: "batch", "extern", "interactive", "0", "0+1"
  std::string name;
  ExecutionStatus status = ExecutionStatus::kUnspecified;
  std::string native_state;
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;
  std::optional<base::WallTime> started_at;
  std::optional<base::WallTime> ended_at;
  std::optional<std::uint32_t> node_count;
  std::optional<std::uint32_t> task_count;
  Usage used;                                           // of all tasks together
  std::optional<std::uint64_t> memory_peak_task_bytes;  // of the task that needed most
  std::string tres_used;                                // as the scheduler writes it
  bool operator==(const Step&) const = default;
};

// How an execution is recognised again; unique within its compute.
struct ExecutionKey {
  SourceType source_type = SourceType::kUnspecified;
  std::string identity;  // never reused by the scheduler
  bool operator==(const ExecutionKey&) const = default;
};

// The id of an execution: a UUID (version 8, RFC 9562) made from SHA-256 over compute, source and
// identity, so that every part of the system derives the same one without a look-up.
std::string ExecutionId(std::string_view compute_id, const ExecutionKey& key);

// Of one execution, however many observations it was merged from.
inline constexpr std::size_t kMaxLabels = 128;
inline constexpr std::size_t kMaxSteps = 512;
inline constexpr std::size_t kMaxNotes = 64;

struct Execution {
  std::string execution_id;
  std::string compute_id;
  SourceType source_type = SourceType::kUnspecified;
  std::string native_id;
  std::string parent_native_id;
  std::uint32_t restart_count = 0;

  // Byte-exact: whatever the scheduler or the user wrote, also where it is not UTF-8.
  std::string name;
  std::string user;
  std::string account;
  std::string queue;
  std::string qos;
  std::string comment;
  std::string working_directory;
  std::vector<std::string> command;
  std::vector<std::string> nodes;
  std::map<std::string, std::string> labels;
  // Name, comment, working directory and command came through a source that alters some bytes
  // (Slurm's accounting keeps a double quote as a backtick): they never replace exact ones.
  bool lossy_text = false;

  ExecutionStatus status = ExecutionStatus::kUnspecified;
  Outcome outcome = Outcome::kUnspecified;
  std::string native_state;
  std::string native_reason;
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;

  std::optional<base::WallTime> submitted_at;
  std::optional<base::WallTime> eligible_at;        // when nothing but resources stood in its way
  std::optional<base::WallTime> expected_start_at;  // while queued: the scheduler's estimate
  std::optional<base::WallTime> started_at;
  std::optional<base::WallTime> ended_at;
  std::optional<std::int64_t> suspended_s;  // of the time between start and end

  Resources requested;
  Resources allocated;
  Usage used;
  std::vector<Step> steps;

  std::string stdout_path;
  std::string stderr_path;
  std::string bundle_hash;
  std::vector<std::string> capture_notes;
  std::optional<base::WallTime> updated_at;
  bool operator==(const Execution&) const = default;
};

// What is known after a further observation: fields that `seen` sets replace those of `known`,
// absent ones leave them. Observations may arrive late: within one restart count a run never
// goes back (terminal to running, running to queued), and what an earlier run of the submission
// says about its state, times and usage is dropped. A higher restart count starts those over;
// not so for Slurm, where each run has an identity of its own and the count only tells which one
// it is. Of a guessed end (kUnknown) nothing stays beside one that was seen, nor when the run is
// seen running later than the guess was made. What belongs to
// waiting (the expected start, the reason) goes when the run leaves the queue; an observation
// that says queued replaces the expected start also by none. A memory peak never gives way to
// one of a weaker basis. Lossy text gives way to exact text, whichever is first. Capture notes
// add up, up to kMaxNotes. Steps are united by id, in the order batch, extern and other words,
// then numbers. Labels beyond kMaxLabels are left out, steps beyond kMaxSteps by BoundSteps.
Execution Merge(Execution known, const Execution& seen);

// Keeps the `most` steps that tell most, in their order: failed ones, then the scheduler's own
// (batch, extern, interactive), then the first ones. True when it left some out; `notes` says so
// then, once.
bool BoundSteps(std::vector<Step>* steps, std::size_t most, std::vector<std::string>* notes);

}  // namespace expanse::evidence
