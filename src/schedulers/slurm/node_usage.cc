#include "schedulers/slurm/node_usage.h"

#include <algorithm>
#include <array>

namespace expanse::schedulers::slurm {
namespace {

template <typename T>
std::optional<T> Sum(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b ? std::optional<T>(*a + *b) : std::nullopt;
}

std::string WeakerBasis(const std::string& a, const std::string& b) {
  constexpr std::array<std::string_view, 4> kWeakestFirst = {"rss", "rusage", "sampled",
                                                             "cgroup_peak"};
  return std::ranges::find(kWeakestFirst, a) <= std::ranges::find(kWeakestFirst, b) ? a : b;
}

}  // namespace

evidence::Usage AddUsage(const evidence::Usage& a, const evidence::Usage& b) {
  evidence::Usage sum;
  sum.cpu_s = Sum(a.cpu_s, b.cpu_s);
  sum.cpu_user_s = Sum(a.cpu_user_s, b.cpu_user_s);
  sum.cpu_system_s = Sum(a.cpu_system_s, b.cpu_system_s);
  sum.memory_peak_bytes = Sum(a.memory_peak_bytes, b.memory_peak_bytes);
  if (sum.memory_peak_bytes)
    sum.memory_peak_basis = WeakerBasis(a.memory_peak_basis, b.memory_peak_basis);
  sum.io_read_bytes = Sum(a.io_read_bytes, b.io_read_bytes);
  sum.io_write_bytes = Sum(a.io_write_bytes, b.io_write_bytes);
  sum.oom_kills = Sum(a.oom_kills, b.oom_kills);
  return sum;
}

std::optional<evidence::Usage> NodeUsage::Add(RunId run, std::string_view node, std::uint32_t nodes,
                                              const evidence::Usage& usage, base::WallTime at) {
  if (nodes == 0) return std::nullopt;
  if (nodes == 1) return usage;  // nothing to add up, nothing to remember
  Run& known = runs_[run];
  known.heard_at = std::max(known.heard_at, at);
  auto found = known.nodes.find(node);
  if (found == known.nodes.end()) {
    if (entries_ >= most_entries_) {
      ++refused_;
      if (known.nodes.empty()) runs_.erase(run);
      return std::nullopt;
    }
    found = known.nodes.emplace(std::string(node), evidence::Usage{}).first;
    ++entries_;
  }
  found->second = usage;
  if (known.nodes.size() < nodes) return std::nullopt;
  auto it = known.nodes.begin();
  evidence::Usage sum = it->second;
  for (++it; it != known.nodes.end(); ++it) sum = AddUsage(sum, it->second);
  return sum;
}

void NodeUsage::Forget(base::WallTime before) {
  std::erase_if(runs_, [&](const auto& entry) {
    if (entry.second.heard_at >= before) return false;
    entries_ -= entry.second.nodes.size();
    return true;
  });
}

}  // namespace expanse::schedulers::slurm
