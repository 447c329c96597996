// Values of sbatch's options: times, sizes, counts, generic resources, array indexes. Nothing comes
// back for what sbatch refuses. Seen on sbatch 22.05.8 where its manual is silent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::workload::sbatch {

struct Time {
  bool unlimited = false;
  std::int64_t seconds = 0;  // whole minutes: seconds are rounded up
};
// "90", "1:30" (minutes:seconds), "1:00:00", "2-0", "2-12:30", "2-12:30:00", "UNLIMITED", "0".
std::optional<Time> ParseTime(std::string_view text);

// "4G", "4gb", "512", "1024K" as bytes; whole MiB, rounded up.
std::optional<std::uint64_t> ParseMemory(std::string_view text);

// A positive count: "4", "+4", "010".
std::optional<std::uint32_t> ParseCount(std::string_view text);

struct NodeCount {
  std::uint32_t min = 0;
  std::uint32_t max = 0;
  // Bytes of the smaller and of the larger count; the same where one is written.
  std::size_t min_begin = 0, min_end = 0;
  bool operator==(const NodeCount&) const = default;
};
// "4", "2-4", "1k".
std::optional<NodeCount> ParseNodes(std::string_view text);

// One item of "gpu:a100:2(S:0-1),shard:4" or "a100:2". Ranges are bytes of the text.
struct GresItem {
  std::string_view name;  // "gpu"; empty where the list is of GPUs anyway
  std::string_view type;
  std::optional<std::uint64_t> count;          // absent: not written, which means 1
  std::size_t count_begin = 0, count_end = 0;  // where it stands or would stand (then empty)
  std::size_t begin = 0;                       // of the item
};
// Lists of --gres (gpus = false) and of --gpus, --gpus-per-* (gpus = true).
std::optional<std::vector<GresItem>> ParseGres(std::string_view text, bool gpus);

// "0-15%4", "1,3,5-7", "0-100:10": how many tasks there are.
std::optional<std::uint32_t> ParseArraySize(std::string_view text);

}  // namespace expanse::workload::sbatch
