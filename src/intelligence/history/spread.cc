#include "intelligence/history/spread.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace expanse::intelligence::history {
namespace {

// Needs within a tenth of each other do not differ for our purposes.
constexpr double kHardlyDiffers = 0.1;

std::optional<double> NeedOf(const predict::Run& run, predict::Resource resource) {
  if (run.ending != predict::Ending::kSuccess) return std::nullopt;
  const auto& need = resource == predict::Resource::kMemory ? run.memory_peak_bytes : run.runtime_s;
  return need && *need > 0 ? need : std::nullopt;
}

struct Group {
  double sum = 0;
  double squares = 0;
  double count = 0;
  void Add(double value) {
    sum += value;
    squares += value * value;
    ++count;
  }
  // The sum of squared distances from the mean.
  double Spread() const { return count == 0 ? 0 : std::max(0.0, squares - sum * sum / count); }
};

std::optional<double> ShareBetween(const std::vector<GroupedRun>& runs,
                                   predict::Resource resource) {
  Group all;
  std::map<std::string, Group> groups;
  for (const GroupedRun& run : runs) {
    const auto need = NeedOf(*run.run, resource);
    if (!need) continue;
    const double value = std::log(*need);
    all.Add(value);
    groups[run.arguments].Add(value);
  }
  const auto count = static_cast<double>(groups.size());
  const auto repeated = std::count_if(groups.begin(), groups.end(),
                                      [](const auto& group) { return group.second.count >= 2; });
  if (all.count < static_cast<double>(kFewestToJudge) || repeated < 2 || all.count <= count)
    return std::nullopt;
  if (std::sqrt(all.Spread() / (all.count - 1)) < kHardlyDiffers) return std::nullopt;
  double within = 0;
  for (const auto& [arguments, group] : groups) within += group.Spread();
  return 1 - (within / (all.count - count)) / (all.Spread() / (all.count - 1));
}

}  // namespace

std::optional<Explained> ExplainedByArguments(const std::vector<GroupedRun>& runs) {
  std::optional<Explained> most;
  for (const predict::Resource resource :
       {predict::Resource::kMemory, predict::Resource::kWalltime}) {
    const auto share = ShareBetween(runs, resource);
    if (share && (!most || *share > most->share)) most = {.share = *share, .resource = resource};
  }
  return most;
}

std::optional<std::size_t> OneThatVaries(const RunNumbers& asked,
                                         const std::vector<RunNumbers>& runs) {
  std::vector<bool> varies(asked.values.size());
  for (const RunNumbers& run : runs) {
    if (run.shape != asked.shape || run.values.size() != asked.values.size()) continue;
    for (std::size_t i = 0; i < varies.size(); ++i) {
      if (run.values[i] != asked.values[i]) varies[i] = true;
    }
  }
  if (std::count(varies.begin(), varies.end(), true) != 1) return std::nullopt;
  return static_cast<std::size_t>(std::find(varies.begin(), varies.end(), true) - varies.begin());
}

}  // namespace expanse::intelligence::history
