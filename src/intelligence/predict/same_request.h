// Whether runs that asked for the same needed the same. Where one name stands for several kinds of
// work (a user's jobs, say), what was asked for tells them apart: then only the runs that asked for
// what the next one asks for are read. Pure; O(n log n).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "intelligence/predict/needs.h"

namespace expanse::intelligence::predict {

// As many runs must have asked for the same (of the same source, of the same name), and knowing the
// request must take away this much of the squared error of predicting left-out needs (of their
// logarithms).
inline constexpr std::size_t kMinSameRequest = 4;
inline constexpr std::size_t kMinSameRequestOfName = 3;
inline constexpr double kMinRequestGain = 0.3;
// Of runs of the same name alone, all are read only if so many needs show that the request explains
// less than this.
inline constexpr std::size_t kMinNeedsToMix = 10;
inline constexpr double kMaxGainToMix = 0.1;
// Or if at least this share of the runs was killed at its limit.
inline constexpr double kUnreliableRequests = 0.1;

struct Selected {
  std::vector<Observation> needs;  // empty: none of the runs can be compared with the next one
  bool same_request = false;       // others were left out
};

// Same cores, memory and walltime as `requested`, within a per cent.
Selected SelectByRequest(std::span<const Observation> needs, std::span<const Run> runs,
                         const Amounts& requested, Basis basis);

}  // namespace expanse::intelligence::predict
