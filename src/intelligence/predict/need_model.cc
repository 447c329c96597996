#include "intelligence/predict/need_model.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace expanse::intelligence::predict {
namespace {

constexpr double kOutlierShare = 0.5;
constexpr std::size_t kFewestForHalfLife = 8;
constexpr double kHalfLives[] = {24, 6};  // runs
// Weighing recent runs more must have predicted this much better.
constexpr double kHalfLifeGain = 0.9;
constexpr double kDriftAtLeast = 0.01;  // mean error; less is noise
constexpr double kNarrowest = 1e-4;
// Runs that have little in common do not widen the tail without end.
constexpr double kWidestOfNovelty = 0.5;

struct Weighed {
  double x = 0;
  double weight = 0;
  bool censored = false;
  double above = 0;  // weight of those above it
};

// Mean absolute error of predicting each need by the decayed mean of those before it.
double ErrorWithHalfLife(std::span<const Observation> needs, double half_life, double grain) {
  const double keep = half_life > 0 ? std::exp2(-1 / half_life) : 1.0;
  double sum = 0;
  double weight = 0;
  double error = 0;
  for (const Observation& need : needs) {
    if (need.censored) continue;
    const double x = std::log(need.need + grain);
    if (weight > 0) error += std::abs(x - sum / weight);
    sum = sum * keep + x;
    weight = weight * keep + 1;
  }
  return error;
}

double ChooseHalfLife(std::span<const Observation> needs, double grain) {
  const auto exact = static_cast<std::size_t>(
      std::ranges::count_if(needs, [](const Observation& need) { return !need.censored; }));
  if (exact < kFewestForHalfLife) return 0;
  double best = 0;
  double best_error = ErrorWithHalfLife(needs, 0, grain) * kHalfLifeGain;
  if (best_error < kDriftAtLeast * static_cast<double>(exact)) return 0;
  for (const double half_life : kHalfLives) {
    const double error = ErrorWithHalfLife(needs, half_life, grain);
    if (error >= best_error) continue;
    best = half_life;
    best_error = error;
  }
  return best;
}

// The median distance of a need to its k-th nearest neighbour, k about the root of their number:
// how coarsely the needs are known where they are dense.
double NeighbourDistance(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  if (n < 2) return 0;
  const auto k = std::clamp<std::size_t>(
      static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(n)))), 1, n - 1);
  std::vector<double> distances;
  distances.reserve(n);
  for (std::size_t i = 0, first = 0; i < n; ++i) {
    // The window of k + 1 neighbours that holds i and reaches least far.
    while (first + k < i) ++first;
    while (first + k + 1 < n && first < i &&
           sorted[first + k + 1] - sorted[i] < sorted[i] - sorted[first])
      ++first;
    distances.push_back(std::max(sorted[i] - sorted[first], sorted[first + k] - sorted[i]));
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::ranges::nth_element(distances, middle);
  return *middle;
}

// How often the run after a kill at a limit needed more than that limit too.
double ShareOfRepetitions(std::span<const Observation> needs) {
  constexpr double kPriorRepeated = 3;
  constexpr double kPriorKills = 4;
  double kills = kPriorKills;
  double repeated = kPriorRepeated;
  for (std::size_t i = 0; i + 1 < needs.size(); ++i) {
    if (!needs[i].killed) continue;
    const Observation& next = needs[i + 1];
    if (next.censored && !next.killed) continue;  // ended otherwise before it could tell
    kills += 1;
    if (next.killed ? next.need >= needs[i].need : next.need > needs[i].need) repeated += 1;
  }
  return repeated / kills;
}

}  // namespace

// Walks from the newest need back: an older need stands unless kOutlierRuns newer ones all stayed
// below half of it.
Floor FloorOf(std::span<const Observation> needs) {
  Floor floor;
  double largest_newer = 0;
  std::size_t newer = 0;
  for (std::size_t i = needs.size(); i-- > 0;) {
    const Observation& need = needs[i];
    const bool outlier = newer >= kOutlierRuns && largest_newer <= kOutlierShare * need.need;
    if (!need.censored) {
      if (outlier)
        floor.outliers = true;
      else
        floor.need = std::max(floor.need, need.need);
    }
    if (outlier) continue;
    largest_newer = std::max(largest_newer, need.need);
    ++newer;
  }
  return floor;
}

const Prior& PriorOf(Resource resource, Basis basis) {
  static constexpr Prior kMemory{.width = 0.05,
                                 .width_runs = 2,
                                 .novelty = 1,
                                 .novelty_width = 0.2,
                                 .beyond_kill = 0.3,
                                 .grain = 64.0 * 1024 * 1024,
                                 .fixed_cost = 64.0 * 1024 * 1024};
  static constexpr Prior kWalltime{.width = 0.08,
                                   .width_runs = 2,
                                   .novelty = 1,
                                   .novelty_width = 0.25,
                                   .beyond_kill = 0.3,
                                   .grain = 60,
                                   .fixed_cost = 60};
  static constexpr Prior kWalltimeOfName{.width = 0.1,
                                         .width_runs = 2,
                                         .novelty = 0.5,
                                         .novelty_width = 0.8,
                                         .beyond_kill = 0.4,
                                         .grain = 60,
                                         .fixed_cost = 60,
                                         .together_s = 12.0 * 3600};
  static constexpr Prior kMemoryOfName = [] {
    Prior prior = kMemory;
    prior.fixed_cost = 256.0 * 1024 * 1024;
    return prior;
  }();
  if (resource != Resource::kWalltime) return OfSameSource(basis) ? kMemory : kMemoryOfName;
  return OfSameSource(basis) ? kWalltime : kWalltimeOfName;
}

namespace {

// How often runs were submitted, those within `together_s` counted once; every run is one where
// nobody knows when it was.
double CountSubmissions(std::span<const Observation> needs, double together_s) {
  std::vector<std::int64_t> periods;
  periods.reserve(needs.size());
  std::size_t unknown = 0;
  const double micros = together_s * 1e6;
  for (const Observation& need : needs) {
    if (need.submitted_micros == 0)
      ++unknown;
    else
      periods.push_back(
          static_cast<std::int64_t>(static_cast<double>(need.submitted_micros) / micros));
  }
  std::ranges::sort(periods);
  const auto repeated = std::ranges::unique(periods);
  return static_cast<double>(unknown + periods.size() - repeated.size());
}

}  // namespace

double NeedModel::ToLog(double amount) const { return std::log(amount + prior_.grain); }

double NeedModel::FromLog(double x) const { return std::exp(x) - prior_.grain; }

std::optional<NeedModel> NeedModel::Create(std::span<const Observation> needs, const Prior& prior) {
  if (needs.empty()) return std::nullopt;
  NeedModel model;
  model.prior_ = prior;
  model.runs_ = needs.size();
  model.half_life_ = ChooseHalfLife(needs, prior.grain);
  const Floor floor = FloorOf(needs);
  model.floor_ = floor.need;
  model.outliers_ = floor.outliers;
  if (needs.back().killed) {
    model.killed_last_ = true;
    model.killed_at_ = needs.back().need;
    model.repeats_ = ShareOfRepetitions(needs);
  }
  model.WeighNeeds(needs);
  model.SumKernels();
  return model;
}

void NeedModel::WeighNeeds(std::span<const Observation> needs) {
  std::vector<Weighed> weighed;
  weighed.reserve(needs.size());
  double total = 0;
  double squares = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const auto age = static_cast<double>(needs.size() - 1 - i);
    const double weight = half_life_ > 0 ? std::exp2(-age / half_life_) : 1.0;
    weighed.push_back({ToLog(needs[i].need), weight, needs[i].censored});
    total += weight;
    squares += weight * weight;
  }
  std::ranges::stable_sort(weighed, {}, &Weighed::x);

  // Kaplan-Meier: the mass of a censored need is shared by what lies above it.
  double above = 0;
  for (Weighed& one : std::views::reverse(weighed)) {
    one.above = above;
    above += one.weight;
  }
  double factor = 1;
  std::vector<double> exact;
  for (const Weighed& one : weighed) {
    const double mass = one.weight * factor / total;
    if (!one.censored) {
      kernels_.push_back({.x = one.x, .mass = mass});
      exact.push_back(one.x);
    } else if (one.above > 0) {
      factor *= 1 + one.weight / one.above;
    } else {
      beyond_mass_ = mass;
      beyond_from_ = one.x;
    }
  }
  const double distance = NeighbourDistance(exact);
  const auto n = static_cast<double>(exact.size());
  const double width = prior_.width_runs * prior_.width * prior_.width + n * distance * distance;
  width_ = std::clamp(std::sqrt(width / (prior_.width_runs + n)), kNarrowest,
                      kWidestOfNovelty * prior_.novelty_width);
  novelty_centre_ = weighed.back().x;
  double effective_runs = total * total / squares;
  if (prior_.together_s > 0)
    effective_runs = std::min(effective_runs, CountSubmissions(needs, prior_.together_s));
  PlaceNovelty(effective_runs);
}

void NeedModel::PlaceNovelty(double effective_runs) {
  double reached = 0;
  for (const Kernel& kernel : kernels_) {
    reached += kernel.mass;
    if (reached < 0.5) continue;
    novelty_centre_ = kernel.x;
    break;
  }
  novelty_mass_ = prior_.novelty / (effective_runs + prior_.novelty);
  for (Kernel& kernel : kernels_) kernel.mass *= 1 - novelty_mass_;
  beyond_mass_ *= 1 - novelty_mass_;
}

void NeedModel::SumKernels() {
  double below = 0;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    Kernel& kernel = kernels_[i];
    kernel.below = below += kernel.mass;
    kernel.left = kernel.mass;
    if (i == 0) continue;
    const Kernel& previous = kernels_[i - 1];
    kernel.left += previous.left * std::exp(-(kernel.x - previous.x) / width_);
  }
  for (std::size_t i = kernels_.size(); i-- > 0;) {
    Kernel& kernel = kernels_[i];
    kernel.right = kernel.mass;
    if (i + 1 == kernels_.size()) continue;
    const Kernel& next = kernels_[i + 1];
    kernel.right += next.right * std::exp(-(next.x - kernel.x) / width_);
  }
}

double NeedModel::LogCdf(double x) const {
  const auto above = std::ranges::upper_bound(kernels_, x, {}, &Kernel::x);
  double cdf = 0;
  if (above != kernels_.begin()) {
    const Kernel& last = *std::prev(above);
    cdf += last.below - 0.5 * last.left * std::exp(-(x - last.x) / width_);
  }
  if (above != kernels_.end()) cdf += 0.5 * above->right * std::exp(-(above->x - x) / width_);
  if (beyond_mass_ > 0 && x > beyond_from_)
    cdf += beyond_mass_ * (1 - std::exp(-(x - beyond_from_) / prior_.beyond_kill));
  const double far = (x - novelty_centre_) / prior_.novelty_width;
  cdf += novelty_mass_ * (far < 0 ? 0.5 * std::exp(far) : 1 - 0.5 * std::exp(-far));
  return std::clamp(cdf, 0.0, 1.0);
}

double NeedModel::LogChance(double x) const {
  const double cdf = LogCdf(x);
  if (!killed_last_) return cdf;
  const double limit = ToLog(killed_at_);
  const double below = LogCdf(limit);
  double again = 0;  // of a repetition: conditional on more than the limit
  if (x > limit && below < 1) again = std::clamp((cdf - below) / (1 - below), 0.0, 1.0);
  return repeats_ * again + (1 - repeats_) * cdf;
}

double NeedModel::Chance(double amount) const { return amount > 0 ? LogChance(ToLog(amount)) : 0; }

double NeedModel::WorthWhile(double amount, double cost_of_failure) const {
  constexpr double kStep = 0.01;
  constexpr int kSteps = 50;
  const double from = ToLog(amount);
  int best_step = 0;
  double least = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const double x = from + step * kStep;
    const double more = std::log((FromLog(x) + prior_.fixed_cost) / (amount + prior_.fixed_cost));
    const double loss = more + cost_of_failure * (1 - LogChance(x));
    if (step > 0 && loss >= least) continue;
    least = loss;
    best_step = step;
  }
  return best_step == 0 ? amount : FromLog(from + best_step * kStep);
}

double NeedModel::Quantile(double q) const {
  double low = novelty_centre_;
  double high = novelty_centre_;
  if (!kernels_.empty()) {
    low = std::min(low, kernels_.front().x);
    high = std::max(high, kernels_.back().x);
  }
  for (double step = 1; LogChance(high) < q && step < 1024; step *= 2) high += step;
  for (double step = 1; LogChance(low) > q && step < 1024; step *= 2) low -= step;
  for (int i = 0; i < 60 && high - low > 1e-7; ++i) {
    const double middle = 0.5 * (low + high);
    (LogChance(middle) < q ? low : high) = middle;
  }
  // Far below the grain: next to nothing.
  return std::max(FromLog(high), 1.0);
}

}  // namespace expanse::intelligence::predict
