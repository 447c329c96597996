#include "intelligence/analyse/cited.h"

#include <cmath>

#include "base/bytes.h"

namespace expanse::intelligence::analyse {
namespace {

std::string_view Ended(predict::Ending ending) {
  switch (ending) {
    case predict::Ending::kSuccess:
      return "succeeded";
    case predict::Ending::kFailure:
      return "failed";
    case predict::Ending::kOutOfMemory:
      return "killed out of memory";
    case predict::Ending::kTimeout:
      return "reached its time limit";
    case predict::Ending::kCancelled:
      return "cancelled";
    case predict::Ending::kInfrastructure:
      return "ended by its node or the scheduler";
    case predict::Ending::kUnknown:
      return "ended in an unknown way";
  }
  return "";
}

std::string Amount(double bytes) {
  return base::FormatBytes({static_cast<std::uint64_t>(std::llround(bytes))});
}

}  // namespace

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return std::to_string(whole) + " s";
  const std::int64_t minutes = whole / 60;
  if (minutes < 60) return std::to_string(minutes) + " min";
  const std::int64_t hours = minutes / 60;
  if (hours < 48) {
    return std::to_string(hours) + " h" +
           (minutes % 60 > 0 ? " " + std::to_string(minutes % 60) + " min" : "");
  }
  return std::to_string(hours / 24) + " d" +
         (hours % 24 > 0 ? " " + std::to_string(hours % 24) + " h" : "");
}

std::string Summarise(const predict::Run& run) {
  std::string line(Ended(run.ending));
  if (run.runtime_s) line += " after " + FormatDuration(*run.runtime_s);
  if (run.memory_peak_bytes) {
    line += ", peak memory " + Amount(*run.memory_peak_bytes);
    if (run.memory_is_floor) line += " or more";
  }
  if (run.requested.memory_bytes) line += " of " + Amount(*run.requested.memory_bytes);
  if (run.gpu_memory_peak_bytes) line += ", GPU memory " + Amount(*run.gpu_memory_peak_bytes);
  return line;
}

std::vector<Cited> Cite(const history::Found& found, const std::vector<std::size_t>& indices) {
  std::vector<Cited> cited;
  for (const std::size_t index : indices) {
    if (index >= found.runs.size()) continue;
    const predict::Run& run = found.runs[index];
    Cited item{.execution_id = run.execution_id,
               .native_id = run.native_id,
               .source_type = {},
               .compute_id = {},
               .similarity = run.similarity,
               .ending = run.ending,
               .summary = Summarise(run)};
    if (index < found.origins.size()) {
      item.source_type = Name(found.origins[index].source_type);
      item.compute_id = found.origins[index].compute_id;
    }
    cited.push_back(std::move(item));
  }
  return cited;
}

}  // namespace expanse::intelligence::analyse
