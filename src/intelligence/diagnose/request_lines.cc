#include "intelligence/diagnose/request_lines.h"

#include <map>
#include <optional>

#include "workload/parse.h"

namespace expanse::intelligence::diagnose {
namespace {

using evidence::SourceType;
using workload::Quantity;

constexpr std::size_t kMaxFiles = 8;  // that are looked at
constexpr std::size_t kMaxFile = std::size_t{1} << 18;

struct Asked {
  const workload::Setting* setting = nullptr;
  std::size_t part = 0;
  bool ambiguous = false;
};

std::map<Quantity, Asked> AskedBy(const workload::Submission& submission) {
  std::map<Quantity, Asked> asked;
  for (std::size_t part = 0; part < submission.parts.size(); ++part) {
    for (const workload::Setting& setting : submission.parts[part].settings) {
      if (!setting.effective || setting.place.line == 0) continue;
      Asked& known = asked[setting.quantity];
      const bool first = known.setting == nullptr;
      if (!first && known.part != part) known.ambiguous = true;
      if (first || (setting.bound == workload::Bound::kLimit &&
                    known.setting->bound == workload::Bound::kRequest))
        known.setting = &setting;
      known.part = part;
    }
  }
  return asked;
}

std::vector<RequestLine> LinesOf(const SourceText& source) {
  std::vector<RequestLine> lines;
  const auto submission = workload::Parse(source.path, source.data);
  if (!submission || submission->format == workload::Format::kSource) return lines;
  for (const auto& [quantity, asked] : AskedBy(*submission)) {
    if (asked.ambiguous) continue;
    const workload::Place& place = asked.setting->place;
    if (place.begin > source.data.size()) continue;
    lines.push_back({.quantity = quantity,
                     .option = asked.setting->name,
                     .path = source.path,
                     .line = place.line,
                     .text = std::string(workload::LineAt(source.data, place.begin))});
  }
  return lines;
}

bool MayBeSubmission(const SourceText& source) {
  if (source.data.size() > kMaxFile) return false;
  const auto format = workload::DetectFormat(source.path, source.data);
  return format && *format != workload::Format::kSource;
}

}  // namespace

std::vector<RequestLine> FindRequestLines(const std::vector<SourceText>& sources) {
  for (std::size_t index = 0; index < sources.size() && index < kMaxFiles; ++index) {
    if (!MayBeSubmission(sources[index])) continue;
    auto lines = LinesOf(sources[index]);
    if (!lines.empty()) return lines;
  }
  return {};
}

std::string_view OptionOf(SourceType scheduler, Quantity quantity) {
  const bool memory = quantity == Quantity::kMemory;
  switch (scheduler) {
    case SourceType::kSlurm:
      if (memory) return "--mem";
      if (quantity == Quantity::kWalltime) return "--time";
      if (quantity == Quantity::kGpu) return "--gres";
      if (quantity == Quantity::kTasks) return "--ntasks";
      if (quantity == Quantity::kCpu) return "--cpus-per-task";
      return "";
    case SourceType::kKubernetes:
      if (memory) return "resources.limits.memory";
      if (quantity == Quantity::kWalltime) return "activeDeadlineSeconds";
      if (quantity == Quantity::kCpu) return "resources.limits.cpu";
      return "";
    case SourceType::kNomad:
      if (memory) return "resources.memory";
      if (quantity == Quantity::kCpu) return "resources.cpu";
      return "";
    case SourceType::kHost:
    case SourceType::kUnspecified:
      break;
  }
  return "";
}

}  // namespace expanse::intelligence::diagnose
