// Hostlist expressions of Slurm: "n[001-010,12]", "rack[1-2]n[0-3]", "a,b[1-3]-ib,c".
// What an expression stands for can be far larger than itself, so every expansion has a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace expanse::schedulers::slurm {

// More hosts than any cluster has; for callers without a limit of their own.
inline constexpr std::size_t kMaxHosts = 200'000;
// Of all their names together.
inline constexpr std::size_t kMaxHostBytes = 16U << 20;

// The hosts in the order of the expression, repeated ones repeated; none for "", "(null)", "None
// assigned", "N/A". Zero padding is kept, the last bracket turns fastest. Fails with
// slurm.hostlist_syntax, or slurm.hostlist_too_long for more than `limit` or kMaxHostBytes (nothing
// is built then).
base::Result<std::vector<std::string>> ExpandHostlist(std::string_view text,
                                                      std::size_t limit = kMaxHosts);

// How many those are, without building them; the same errors, the limit apart. Counts that do not
// fit are the largest number.
base::Result<std::uint64_t> CountHosts(std::string_view text);

}  // namespace expanse::schedulers::slurm
