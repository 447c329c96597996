// Versions of Slurm as `squeue --version` and its siblings print them.
#pragma once

#include <compare>
#include <optional>
#include <string_view>

namespace expanse::schedulers::slurm {

struct Version {
  int year = 0;   // 22
  int month = 0;  // 5
  int micro = 0;  // 8
  auto operator<=>(const Version&) const = default;
};

// "slurm 22.05.8", "slurm-wlm 22.05.8", "slurm 26.05.0-0rc1", "24.11".
std::optional<Version> ParseVersion(std::string_view text);

}  // namespace expanse::schedulers::slurm
