#include "intelligence/predict/probability.h"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <cmath>

namespace expanse::intelligence::predict {
namespace {

// Errors are values here: out-of-range arguments give NaN, nothing throws.
using Policy = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>,
    boost::math::policies::rounding_error<boost::math::policies::ignore_error>,
    boost::math::policies::promote_double<false>>;

double Quantile(double a, double b, double q) {
  const boost::math::beta_distribution<double, Policy> beta(a, b);
  return std::clamp(boost::math::quantile(beta, q), 0.0, 1.0);
}

struct Counts {
  std::size_t runs = 0;
  std::size_t successes = 0;
};

Counts Count(std::span<const Run> runs) {
  Counts counts;
  for (const Run& run : runs) {
    if (!TellsOfCompletion(run.ending)) continue;
    ++counts.runs;
    if (run.ending == Ending::kSuccess) ++counts.successes;
  }
  return counts;
}

}  // namespace

Probability JeffreysProbability(std::size_t successes, std::size_t trials, Basis basis) {
  successes = std::min(successes, trials);
  const double a = 0.5 + static_cast<double>(successes);
  const double b = 0.5 + static_cast<double>(trials - successes);
  const double sum = a + b;
  Probability result;
  result.mean = a / sum;
  result.sigma = std::sqrt(a * b / (sum * sum * (sum + 1)));
  result.p10 = Quantile(a, b, 0.1);
  result.p90 = Quantile(a, b, 0.9);
  result.success_count = static_cast<std::uint32_t>(successes);
  result.basis = basis;
  return result;
}

bool TellsOfCompletion(Ending ending) {
  switch (ending) {
    case Ending::kSuccess:
    case Ending::kFailure:
    case Ending::kOutOfMemory:
    case Ending::kTimeout:
      return true;
    case Ending::kCancelled:
    case Ending::kInfrastructure:
    case Ending::kUnknown:
      return false;
  }
  return false;
}

std::optional<Probability> CompletionProbability(std::span<const Run> runs, Basis basis) {
  const Counts counts = Count(runs);
  if (counts.runs < 2) return std::nullopt;
  return JeffreysProbability(counts.successes, counts.runs, basis);
}

std::optional<Probability> RecurrenceProbability(std::span<const Run> runs, Basis basis) {
  const Counts counts = Count(runs);
  if (counts.runs < 2) return std::nullopt;
  return Residual(JeffreysProbability(counts.successes, counts.runs, basis));
}

Probability Residual(const Probability& completion) {
  Probability rest = completion;
  rest.mean = 1 - completion.mean;
  rest.p10 = 1 - completion.p90;
  rest.p90 = 1 - completion.p10;
  return rest;
}

double RoundedToCents(double value) { return std::round(value * 100) / 100; }

Probability Rounded(const Probability& probability) {
  Probability rounded = probability;
  rounded.mean = RoundedToCents(probability.mean);
  rounded.sigma = RoundedToCents(probability.sigma);
  rounded.p10 = RoundedToCents(probability.p10);
  rounded.p90 = RoundedToCents(probability.p90);
  return rounded;
}

}  // namespace expanse::intelligence::predict
