#include "workload/submission.h"

#include <algorithm>

namespace expanse::workload {

Place PlaceOf(std::string_view text, std::size_t begin, std::size_t end) {
  begin = std::min(begin, text.size());
  const std::string_view before = text.substr(0, begin);
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  return {.begin = begin,
          .end = std::max(begin, std::min(end, text.size())),
          .line = static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n') + 1),
          .column = static_cast<std::uint32_t>(begin - line_start + 1)};
}

std::string_view LineAt(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  const std::size_t newline = text.substr(0, at).rfind('\n');
  const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  return text.substr(start, text.find('\n', at) - start);
}

std::string_view Name(Format format) {
  switch (format) {
    case Format::kSbatch:
      return "sbatch";
    case Format::kKubernetes:
      return "kubernetes";
    case Format::kNomad:
      return "nomad";
    case Format::kSource:
      return "source";
  }
  return "";
}

std::string_view Name(Quantity quantity) {
  switch (quantity) {
    case Quantity::kCpu:
      return "cpu";
    case Quantity::kMemory:
      return "memory";
    case Quantity::kGpu:
      return "gpu";
    case Quantity::kGpuMemory:
      return "gpu_memory";
    case Quantity::kWalltime:
      return "walltime";
    case Quantity::kNodes:
      return "nodes";
    case Quantity::kTasks:
      return "tasks";
    case Quantity::kDisk:
      return "disk";
  }
  return "";
}

std::string_view Name(Per per) {
  switch (per) {
    case Per::kJob:
      return "job";
    case Per::kNode:
      return "node";
    case Per::kTask:
      return "task";
    case Per::kCpu:
      return "cpu";
    case Per::kGpu:
      return "gpu";
    case Per::kSocket:
      return "socket";
    case Per::kContainer:
      return "container";
  }
  return "";
}

}  // namespace expanse::workload
