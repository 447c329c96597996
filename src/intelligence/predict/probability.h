// How likely a run completes, from recorded runs: Jeffreys' posterior of a binomial proportion,
// Beta(1/2 + s, 1/2 + n - s) for s of n. Mean and sigma are its moments, p10 and p90 its quantiles.
// Pure; linear in the runs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "intelligence/predict/run.h"

namespace expanse::intelligence::predict {

// The posterior after `successes` of `trials`; `successes` above `trials` counts as all of them.
Probability JeffreysProbability(std::size_t successes, std::size_t trials, Basis basis);

// Whether a run says anything about completion: cancelled runs, node failures, preemptions and runs
// whose end nobody knows do not.
bool TellsOfCompletion(Ending ending);

// The chance that a run completes; success_count counts completions. Nothing with fewer than two
// runs that tell: unknown, never a guess.
std::optional<Probability> CompletionProbability(std::span<const Run> runs, Basis basis);

// The share of runs that fail; success_count counts the runs that did not, as the reference docs
// print it. Nothing with fewer than two runs that tell.
std::optional<Probability> RecurrenceProbability(std::span<const Run> runs, Basis basis);

// What is left: 1 - p, with p10 and p90 mirrored; success_count stays that of completions.
Probability Residual(const Probability& completion);

// Two decimals, as people read them: 4 of 4 is 0.90 0.12 0.73 1.00, its residual 0.10 0.12 0.00
// 0.27.
Probability Rounded(const Probability& probability);
double RoundedToCents(double value);

}  // namespace expanse::intelligence::predict
