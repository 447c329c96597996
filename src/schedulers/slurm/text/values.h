// Slurm's spellings of times, amounts and exit codes, of versions 20.11 to 26.05. Pure functions
// over text; what a value does not say (N/A, None, Unknown, INVALID, "") and what is no value at
// all is absent, never zero.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"

namespace expanse::schedulers::slurm {

// True for the words with which Slurm's programs say that there is no value: "", "(null)", "N/A",
// "n/a", "None", "NONE", "Unknown", "None assigned", "Invalid", "NOT_SET".
bool IsAbsent(std::string_view text);

// [days-]hours:minutes:seconds[.fraction], minutes:seconds[.fraction], days-hours[:minutes], or
// bare seconds, as in the Elapsed and CPU times of sacct, squeue and scontrol. Absent for limits'
// words.
std::optional<std::chrono::microseconds> ParseElapsed(std::string_view text);

struct TimeLimit {
  enum class Kind : std::uint8_t { kLimited, kUnlimited, kPartition };
  Kind kind = Kind::kLimited;
  std::chrono::seconds limit{0};  // of kLimited
  bool operator==(const TimeLimit&) const = default;
};
// The same spellings, UNLIMITED and Partition_Limit.
std::optional<TimeLimit> ParseTimeLimit(std::string_view text);

// Epoch seconds (SLURM_TIME_FORMAT=%s) or ISO 8601; without an offset that is UTC, since every
// command runs with TZ=UTC. Absent for 0, NO_VAL and whatever is within two days of the epoch:
// a zero that was printed with some time zone; and for what is after the year 9999, which RFC 3339
// and protobuf cannot write.
std::optional<base::WallTime> ParseTimestamp(std::string_view text);

enum class MemoryScope : std::uint8_t { kTotal, kPerCpu, kPerNode };
struct Memory {
  std::uint64_t bytes = 0;
  MemoryScope scope = MemoryScope::kTotal;
  bool operator==(const Memory&) const = default;
};
inline constexpr std::uint64_t kBytes = 1;
inline constexpr std::uint64_t kKibibyte = 1024;
inline constexpr std::uint64_t kMebibyte = kKibibyte * 1024;

// "4Gc" (per CPU), "16000Mn" (per node), "1.50T", "62.5G", "4000M", "12"; units are powers of 1024.
// A number without unit counts `bare_unit` bytes each; in one with the highest bit set (MEM_PER_CPU
// of slurm.h) the rest is per CPU.
std::optional<Memory> ParseMemory(std::string_view text, std::uint64_t bare_unit);
// What a job gets of it altogether; unknown where a count is, and for 0 ("all of the node").
std::optional<std::uint64_t> TotalBytes(const Memory& memory, std::optional<std::uint64_t> cpus,
                                        std::optional<std::uint64_t> nodes);

// "12", "4K" (4096, as Slurm shortens), "1.5M", the lower end of "2-4".
std::optional<std::uint64_t> ParseCount(std::string_view text);

struct ExitStatus {
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;     // 0: it ended by itself
  bool core_dumped = false;    // the signal's number came with the flag of wait(2) that says so
  bool out_of_memory = false;  // signal 125, Slurm's own (SIG_OOM) for a step that the limit hit
  bool operator==(const ExitStatus&) const = default;
};
// "2:0", "0:9", "0:125", "0:139"; or a bare exit code.
std::optional<ExitStatus> ParseExitCode(std::string_view text);
// The same from a wait(2) status, as squeue prints it in some versions.
ExitStatus ExitStatusFromWait(std::uint32_t wait_status);

}  // namespace expanse::schedulers::slurm
