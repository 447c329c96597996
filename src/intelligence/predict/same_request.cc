#include "intelligence/predict/same_request.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace expanse::intelligence::predict {
namespace {

// Amounts in steps of one per cent; 0 for unknown.
using Asked = std::tuple<long, long, long>;

long Step(std::optional<double> amount) {
  amount = Positive(amount);
  return amount ? 1 + std::lround(std::log1p(*amount) * 100) : 0;
}

Asked AskedOf(const Amounts& amounts) {
  return {Step(amounts.cpu_cores), Step(amounts.memory_bytes), Step(amounts.walltime_s)};
}

struct Sums {
  double count = 0;
  double sum = 0;
};

// The error of predicting `x` from the mean of the others.
double LeftOut(const Sums& sums, double x) { return x - (sums.sum - x) / (sums.count - 1); }

struct Gain {
  double share = 0;       // of the squared error
  std::size_t needs = 0;  // whose request others asked for too
};

Gain GainOfRequest(std::span<const Observation> needs, std::span<const Run> runs) {
  std::map<Asked, Sums> groups;
  Sums all;
  for (const Observation& need : needs) {
    if (need.censored) continue;
    for (Sums* sums : {&groups[AskedOf(runs[need.run].requested)], &all}) {
      sums->count += 1;
      sums->sum += std::log(need.need);
    }
  }
  if (all.count < 2) return {};
  Gain gain;
  double error = 0;
  double error_within = 0;
  for (const Observation& need : needs) {
    if (need.censored) continue;
    const Sums& group = groups[AskedOf(runs[need.run].requested)];
    if (group.count < 2) continue;
    const double plain = LeftOut(all, std::log(need.need));
    const double within = LeftOut(group, std::log(need.need));
    error += plain * plain;
    error_within += within * within;
    ++gain.needs;
  }
  if (error > 0) gain.share = 1 - error_within / error;
  return gain;
}

}  // namespace

Selected SelectByRequest(std::span<const Observation> needs, std::span<const Run> runs,
                         const Amounts& requested, Basis basis) {
  const Asked wanted = AskedOf(requested);
  if (wanted == Asked{0, 0, 0}) return {.needs = {needs.begin(), needs.end()}};
  std::vector<Observation> same;
  for (const Observation& need : needs) {
    // The newest run, if it was killed, may be the one to come whatever it asked for.
    if (AskedOf(runs[need.run].requested) == wanted || (need.killed && &need == &needs.back()))
      same.push_back(need);
  }
  if (same.size() == needs.size()) return {.needs = {needs.begin(), needs.end()}};
  const Gain gain = GainOfRequest(needs, runs);
  if (gain.share >= kMinRequestGain && same.size() >= kMinSameRequest)
    return {.needs = std::move(same), .same_request = true};
  if (OfSameSource(basis) || (gain.needs >= kMinNeedsToMix && gain.share < kMaxGainToMix))
    return {.needs = {needs.begin(), needs.end()}};
  if (same.size() < kMinSameRequestOfName) {
    // What was asked for did not mean much where it so often was not enough.
    const auto killed = std::ranges::count_if(needs, &Observation::killed);
    if (static_cast<double>(killed) >= kUnreliableRequests * static_cast<double>(needs.size()))
      return {.needs = {needs.begin(), needs.end()}};
    same.clear();
  }
  return {.needs = std::move(same), .same_request = true};
}

}  // namespace expanse::intelligence::predict
