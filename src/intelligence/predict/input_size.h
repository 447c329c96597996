// Whether the size of the input explains what runs needed, and what they would have needed with
// another input. Two shapes are tried, a power law (log need on log size) and a line (need on
// size); either counts only if it predicts left-out runs clearly better than their mean does. Pure,
// linear in the observations.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "intelligence/predict/needs.h"

namespace expanse::intelligence::predict {

struct Explanation {
  enum class Shape : std::uint8_t { kPower, kLine };
  Shape shape = Shape::kPower;
  double intercept = 0;
  double slope = 0;
  double gain = 0;  // share of the left-out squared error (of log need) that is gone
  double smallest = 0;
  double largest = 0;  // input sizes seen

  // Natural logarithm of the need at a size. Nothing needs less than the smallest inputs seen did.
  double LogNeed(double size) const;

 private:
  double OnCurve(double size) const;
};

// At least this many runs with at least kMinSizes different sizes; and at least this much of the
// error explained.
inline constexpr std::size_t kMinExplainedRuns = 5;
inline constexpr std::size_t kMinSizes = 3;
inline constexpr double kMinGain = 0.3;

// Nothing where the size explains too little, or `size` is too far from those seen (more than four
// times beyond them).
std::optional<Explanation> ExplainByInputSize(std::span<const Observation> needs, double size);

// The same observations as they would have been with an input of `size`.
std::vector<Observation> AdjustedTo(double size, const Explanation& explanation,
                                    std::span<const Observation> needs);

}  // namespace expanse::intelligence::predict
