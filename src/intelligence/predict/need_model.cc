#include "intelligence/predict/need_model.h"

#include <algorithm>
#include <cmath>

namespace expanse::intelligence::predict {
namespace {

constexpr double kOutlierShare = 0.5;
constexpr std::size_t kFewestForHalfLife = 8;
constexpr double kHalfLives[] = {24, 6};  // runs
// Weighing recent runs more must have predicted this much better.
constexpr double kHalfLifeGain = 0.9;
constexpr double kDriftAtLeast = 0.01;  // mean error; less is noise
constexpr double kNarrowest = 1e-4;

struct Weighed {
  double x = 0;
  double weight = 0;
  bool censored = false;
};

// Mean absolute error of predicting each need by the decayed mean of those before it.
double ErrorWithHalfLife(std::span<const Observation> needs, double half_life) {
  const double keep = half_life > 0 ? std::exp2(-1 / half_life) : 1.0;
  double sum = 0;
  double weight = 0;
  double error = 0;
  for (const Observation& need : needs) {
    if (need.censored) continue;
    const double x = std::log(need.need);
    if (weight > 0) error += std::abs(x - sum / weight);
    sum = sum * keep + x;
    weight = weight * keep + 1;
  }
  return error;
}

double ChooseHalfLife(std::span<const Observation> needs) {
  const auto exact = static_cast<std::size_t>(
      std::ranges::count_if(needs, [](const Observation& need) { return !need.censored; }));
  if (exact < kFewestForHalfLife) return 0;
  double best = 0;
  double best_error = ErrorWithHalfLife(needs, 0) * kHalfLifeGain;
  if (best_error < kDriftAtLeast * static_cast<double>(exact)) return 0;
  for (const double half_life : kHalfLives) {
    const double error = ErrorWithHalfLife(needs, half_life);
    if (error >= best_error) continue;
    best = half_life;
    best_error = error;
  }
  return best;
}

std::vector<Weighed> Weigh(std::span<const Observation> needs, double half_life) {
  std::vector<Weighed> weighed;
  weighed.reserve(needs.size());
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const auto age = static_cast<double>(needs.size() - 1 - i);
    const double weight = half_life > 0 ? std::exp2(-age / half_life) : 1.0;
    weighed.push_back({std::log(needs[i].need), weight, needs[i].censored});
  }
  std::ranges::stable_sort(weighed, {}, &Weighed::x);
  return weighed;
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

const Prior& PriorOf(Resource resource) {
  static constexpr Prior kMemory;
  static constexpr Prior kWalltime{
      .width = 0.2, .width_runs = 2, .novelty = 0.5, .novelty_width = 0.8, .beyond_kill = 0.5};
  return resource == Resource::kWalltime ? kWalltime : kMemory;
}

std::optional<NeedModel> NeedModel::Create(std::span<const Observation> needs, const Prior& prior) {
  if (needs.empty()) return std::nullopt;
  NeedModel model;
  model.prior_ = prior;
  model.runs_ = needs.size();
  model.half_life_ = ChooseHalfLife(needs);
  const Floor floor = FloorOf(needs);
  model.floor_ = floor.need;
  model.outliers_ = floor.outliers;
  if (needs.back().killed) {
    model.killed_last_ = true;
    model.killed_at_ = std::log(needs.back().need);
  }

  const std::vector<Weighed> weighed = Weigh(needs, model.half_life_);
  double total = 0;
  double squares = 0;
  for (const Weighed& one : weighed) {
    total += one.weight;
    squares += one.weight * one.weight;
  }
  const double effective = total * total / squares;

  // Kaplan-Meier: the mass of a censored need is shared by what lies above it.
  double exact_above = 0;
  for (const Weighed& one : weighed) exact_above += one.censored ? 0 : one.weight;
  double factor = 1;
  double carried = 0;
  std::vector<double> exact;
  for (const Weighed& one : weighed) {
    const double mass = one.weight * factor / total;
    if (!one.censored) {
      model.kernels_.push_back({.x = one.x, .mass = mass});
      exact.push_back(one.x);
      exact_above -= one.weight;
    } else if (exact_above > 1e-12 * total) {
      // Of equal needs the exact one came first in time or not; both orders are consistent.
      factor *= 1 + one.weight / exact_above;
    } else {
      carried += mass;
      model.beyond_from_ = std::max(carried == mass ? one.x : model.beyond_from_, one.x);
    }
  }
  model.beyond_mass_ = carried;

  const double distance = NeighbourDistance(exact);
  const auto n = static_cast<double>(exact.size());
  model.width_ =
      std::sqrt((prior.width_runs * prior.width * prior.width + n * distance * distance) /
                (prior.width_runs + n));
  model.width_ = std::max(model.width_, kNarrowest);

  double reached = 0;
  model.novelty_centre_ = weighed.back().x;
  for (const Kernel& kernel : model.kernels_) {
    reached += kernel.mass;
    if (reached < 0.5) continue;
    model.novelty_centre_ = kernel.x;
    break;
  }
  model.novelty_mass_ = prior.novelty / (effective + prior.novelty);
  const double rest = 1 - model.novelty_mass_;
  model.beyond_mass_ *= rest;
  double below = 0;
  for (std::size_t i = 0; i < model.kernels_.size(); ++i) {
    Kernel& kernel = model.kernels_[i];
    kernel.mass *= rest;
    below += kernel.mass;
    kernel.below = below;
    kernel.left = kernel.mass;
    if (i == 0) continue;
    const Kernel& previous = model.kernels_[i - 1];
    kernel.left += previous.left * std::exp(-(kernel.x - previous.x) / model.width_);
  }
  for (std::size_t i = model.kernels_.size(); i-- > 0;) {
    Kernel& kernel = model.kernels_[i];
    kernel.right = kernel.mass;
    if (i + 1 == model.kernels_.size()) continue;
    const Kernel& next = model.kernels_[i + 1];
    kernel.right += next.right * std::exp(-(next.x - kernel.x) / model.width_);
  }
  return model;
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

double NeedModel::Chance(double amount) const {
  if (!(amount > 0)) return 0;
  const double x = std::log(amount);
  if (!killed_last_) return LogCdf(x);
  if (x <= killed_at_) return 0;
  const double below = LogCdf(killed_at_);
  if (below >= 1) return 0;
  return std::clamp((LogCdf(x) - below) / (1 - below), 0.0, 1.0);
}

double NeedModel::Quantile(double q) const {
  double low = novelty_centre_;
  double high = novelty_centre_;
  if (!kernels_.empty()) {
    low = std::min(low, kernels_.front().x);
    high = std::max(high, kernels_.back().x);
  }
  if (killed_last_) low = high = std::max(high, killed_at_);
  double step = 1;
  while (Chance(std::exp(high)) < q && step < 512) high += step *= 2;
  step = 1;
  if (killed_last_) low = killed_at_;
  while (!killed_last_ && Chance(std::exp(low)) > q && step < 512) low -= step *= 2;
  for (int i = 0; i < 60 && high - low > 1e-7; ++i) {
    const double middle = 0.5 * (low + high);
    (Chance(std::exp(middle)) < q ? low : high) = middle;
  }
  return std::exp(high);
}

}  // namespace expanse::intelligence::predict
