#include "intelligence/predict/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "intelligence/predict/same_request.h"
#include "intelligence/predict/units.h"

namespace expanse::intelligence::predict {
namespace {

// The most that a need is ever taken for: 2^60 bytes, or about as many seconds.
constexpr double kLargestAmount = 1152921504606846976.0;

// Needs of runs whose input was at most as large, as they were.
double FloorAtSize(std::span<const Observation> needs, double size) {
  std::vector<Observation> smaller;
  for (const Observation& need : needs) {
    if (!(need.input_size > size)) smaller.push_back(need);
  }
  return FloorOf(smaller).need;
}

std::string SayRuns(std::size_t runs) {
  return fmt::format("{} run{}", runs, runs == 1 ? "" : "s");
}

std::string SayBasis(const LimitModel& limit) {
  const std::string what = limit.resource == Resource::kMemory ? "memory" : "run time";
  const Resource resource = limit.resource;
  std::string text;
  if (limit.model.killed_last()) {
    text = fmt::format("the last run was ended by its limit of {}, so the need is above that",
                       Say(resource, limit.model.killed_at()));
  } else {
    const double p50 = limit.model.Quantile(0.5);
    text = fmt::format("{} of {}: half needed up to {}, the largest {}", what,
                       SayRuns(limit.model.runs()), Say(resource, p50), Say(resource, limit.floor));
  }
  if (limit.same_request) text += "; only runs that asked for the same are read, others differ";
  if (limit.explanation)
    text += fmt::format(
        "; the input size explains {:.0f} % of the spread, needs are taken at this "
        "input's size",
        100 * limit.explanation->gain);
  if (limit.model.recent_weigh_more()) text += "; recent runs weigh more, as the need has drifted";
  if (limit.model.outliers())
    text += fmt::format("; an older need more than twice that of the {} runs after it is set aside",
                        kOutlierRuns);
  return text;
}

// No run needed more than `requested`, as far as runs tell.
bool HasHeld(const LimitModel& limit, double requested) {
  return std::ranges::none_of(limit.needs, [&](const Observation& need) {
    return need.killed ? need.need >= requested : need.need > requested;
  });
}

Change Decide(const LimitModel& limit, double amount, double requested, double target) {
  if (amount <= requested)
    return amount <= (1 - kWorthLowering) * requested ? Change::kLower : Change::kNone;
  if (limit.model.Chance(requested) >= target && requested >= limit.floor) return Change::kNone;
  const double headroom = limit.resource == Resource::kMemory ? kMemoryHeadroom : kWalltimeHeadroom;
  if (HasHeld(limit, requested) && limit.floor <= (1 - headroom) * requested) return Change::kNone;
  return Change::kRaise;
}

std::string Explain(const LimitModel& limit, const ResourceAdvice& advice, double target) {
  const std::string basis = SayBasis(limit);
  const std::string amount = Say(advice.resource, *advice.amount);
  const int percent = static_cast<int>(std::floor(100 * advice.chance.value_or(0)));
  if (!advice.requested)
    return fmt::format("{}; {} suffices with a chance of {} %", basis, amount, percent);
  switch (advice.change) {
    case Change::kLower:
      return fmt::format("{}; {} suffices with a chance of {} %, {} was requested", basis, amount,
                         percent, Say(advice.resource, *advice.requested));
    case Change::kRaise:
      return fmt::format("{}; the {} requested suffices with a chance of {:.0f} %, {} with {} %",
                         basis, Say(advice.resource, *advice.requested),
                         std::floor(100 * advice.requested_chance.value_or(0)), amount, percent);
    case Change::kNone:
      if (percent < static_cast<int>(100 * target))
        return fmt::format("{}; the {} requested has held and is kept (chance {} %)", basis, amount,
                           percent);
      return fmt::format("{}; the {} requested is kept, another amount would change little", basis,
                         amount);
  }
  return basis;
}

// `trusted`: what was asked for, where that is worth more than the history.
double MostOf(const NeedModel& model, double largest, Basis basis, std::optional<double> trusted) {
  if (model.killed_last()) largest = std::max(largest, model.killed_at());
  const double most = largest * (OfSameSource(basis) ? kMostTimes : kMostTimesOfName);
  return std::max(most, trusted.value_or(0));
}

// Between 512 MiB and some GiB the next unit is up to twice as much: that may be more than the
// chance is worth, which was weighed without units. Not asked while few runs tell, and not of
// walltime, which a run gives back when it ends.
double WorthWhileInUnits(const LimitModel& limit, double amount) {
  const double more = limit.model.WorthWhile(amount, kFailureCost);
  if (limit.resource != Resource::kMemory || limit.model.runs() < kFewRuns) return more;
  const double least_unit = RoundUpToUnit(limit.resource, amount);
  const double unit = RoundUpToUnit(limit.resource, more);
  if (unit < kCoarseUnit * least_unit) return more;
  const double gain = limit.model.Chance(unit) - limit.model.Chance(least_unit);
  return std::log(unit / least_unit) > kFailureCost * gain ? amount : more;
}

}  // namespace

std::optional<LimitModel> ModelLimit(Resource resource, std::span<const Run> runs, Basis basis,
                                     const Amounts& requested, std::optional<double> input_size) {
  std::vector<Observation> needs =
      resource == Resource::kMemory ? MemoryNeeds(runs) : WalltimeNeeds(runs);
  Selected selected = SelectByRequest(needs, runs, requested, basis);
  const auto& asked = resource == Resource::kMemory ? requested.memory_bytes : requested.walltime_s;
  // Where nothing is asked for, runs that can hardly be compared are better than none.
  if (asked || !selected.needs.empty()) needs = std::move(selected.needs);
  if (needs.empty()) return std::nullopt;
  std::optional<Explanation> explanation;
  if (input_size) explanation = ExplainByInputSize(needs, *input_size);
  std::optional<double> trusted;
  if (resource == Resource::kWalltime && !OfSameSource(basis)) trusted = asked;
  if (trusted && needs.size() < kFewestToDoubtWalltime && !needs.back().killed) return std::nullopt;
  double floor = 0;
  double expected = 0;
  if (explanation) {
    floor = FloorAtSize(needs, std::max(*input_size, explanation->smallest));
    expected = std::exp(explanation->LogNeed(*input_size));
    needs = AdjustedTo(*input_size, *explanation, needs);
  }
  auto model = NeedModel::Create(needs, PriorOf(resource, basis));
  if (!model) return std::nullopt;
  if (!explanation) floor = model->floor();
  const double most = MostOf(*model, std::max(floor, expected), basis, trusted);
  return LimitModel{.resource = resource,
                    .model = std::move(*model),
                    .needs = std::move(needs),
                    .explanation = explanation,
                    .same_request = selected.same_request,
                    .floor = floor,
                    .most = most};
}

double AmountFor(const LimitModel& limit, double chance, bool round_to_units) {
  double amount = std::max(limit.model.Quantile(chance), limit.floor);
  amount = round_to_units ? WorthWhileInUnits(limit, amount)
                          : limit.model.WorthWhile(amount, kFailureCost);
  if (limit.most > 0) amount = std::min(amount, limit.most);
  if (limit.resource == Resource::kMemory && limit.model.runs() < kFewRuns)
    amount = std::max(amount, std::clamp(kTimesOfFewRuns * limit.floor, kLeastMemoryOfFewRuns,
                                         kMostMemoryOfFewRuns));
  amount = std::min(amount, kLargestAmount);
  return round_to_units ? RoundUpToUnit(limit.resource, amount) : amount;
}

LimitAmounts ChooseTogether(const std::optional<LimitModel>& memory,
                            const std::optional<LimitModel>& walltime, double target,
                            bool round_to_units) {
  LimitAmounts best;
  if (memory) best.memory = AmountFor(*memory, target, round_to_units);
  if (walltime) best.walltime = AmountFor(*walltime, target, round_to_units);
  if (!memory || !walltime) return best;
  const double memory_chance = memory->model.Chance(*best.memory);
  const double walltime_chance = walltime->model.Chance(*best.walltime);
  if (memory_chance * walltime_chance >= target) return best;

  // Raise the one, the other, or both.
  const double share = std::sqrt(target);
  const LimitAmounts least = best;
  std::optional<double> least_cost;
  const auto consider = [&](double memory_target, double walltime_target) {
    if (memory_target >= 1 || walltime_target >= 1) return;
    const double m = std::max(*least.memory, AmountFor(*memory, memory_target, round_to_units));
    const double w =
        std::max(*least.walltime, AmountFor(*walltime, walltime_target, round_to_units));
    const double cost = std::log(m / *least.memory) + std::log(w / *least.walltime);
    if (least_cost && cost >= *least_cost) return;
    least_cost = cost;
    best = {.memory = m, .walltime = w};
  };
  consider(share, share);
  consider(target / walltime_chance, target);
  consider(target, target / memory_chance);
  return best;
}

ResourceAdvice AdviseLimit(Resource resource, const std::optional<LimitModel>& limit,
                           std::optional<double> amount, std::optional<double> requested,
                           double target) {
  ResourceAdvice advice;
  advice.resource = resource;
  advice.requested = requested;
  if (!limit || !amount) {
    advice.amount = requested;
    advice.reason = fmt::format("no recorded run that can be compared tells how much {} is needed",
                                Name(resource));
    return advice;
  }
  advice.floor = limit->floor;
  advice.runs = limit->model.runs();
  advice.need_p10 = limit->model.Quantile(0.1);
  advice.need_p50 = limit->model.Quantile(0.5);
  advice.need_p90 = limit->model.Quantile(0.9);
  advice.amount = amount;
  if (requested) {
    advice.requested_chance = limit->model.Chance(*requested);
    advice.change = Decide(*limit, *amount, *requested, target);
    if (advice.change == Change::kNone) advice.amount = requested;
  }
  advice.chance = limit->model.Chance(*advice.amount);
  advice.reason = Explain(*limit, advice, target);
  return advice;
}

}  // namespace expanse::intelligence::predict
