// Parsers of the files of one process. Formats: proc(5). Malformed text gives nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace expanse::collect {

// /proc/PID/stat. Times in clock ticks (100 a second).
struct ProcStat {
  pid_t pid = 0;
  std::string name;  // comm: up to 15 bytes of anything, brackets and blanks included
  char state = '?';
  pid_t parent = 0;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  std::uint64_t children_user = 0;  // of children that were waited for
  std::uint64_t children_system = 0;
  std::uint64_t threads = 0;
  std::uint64_t start = 0;  // ticks since boot
  std::uint64_t rss_pages = 0;

  std::uint64_t own() const { return user + system; }
  std::uint64_t children() const { return children_user + children_system; }
};
std::optional<ProcStat> ParseProcStat(std::string_view text);

// Resident memory by kind from /proc/PID/status, in bytes (Linux 4.5). Kernel threads have none.
struct ProcResident {
  std::uint64_t anon = 0;
  std::uint64_t file = 0;
  std::uint64_t shmem = 0;
};
std::optional<ProcResident> ParseProcStatus(std::string_view text);

// /proc/PID/smaps_rollup: what the process's share in anonymous and shared memory is, each page
// divided by the number of processes that map it. Before Linux 5.10 it has no parts; then all of
// Pss counts.
std::optional<std::uint64_t> ParseProportionalNeed(std::string_view text);

}  // namespace expanse::collect
