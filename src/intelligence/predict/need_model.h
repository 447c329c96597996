// The distribution of the next run's need, from what earlier runs needed (exactly, or more than a
// limit). In logarithms (of the need and a grain, below which differences do not matter): a mixture
// of Laplace kernels around the needs seen, whose width is the distance between neighbours (shrunk
// towards a prior width, so that few runs have wide tails and many have narrow ones); recent runs
// weigh more where that predicted the past better; the mass of a kill at a limit moves to the needs
// above it (Kaplan-Meier) or beyond the limit; a run unlike all before has a share that falls with
// the number of runs; and after a kill the next run may be the same one again. Pure; O(n log n) to
// make, O(log n) to ask.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "intelligence/predict/needs.h"

namespace expanse::intelligence::predict {

// What is believed before there are runs, per resource; measured on public traces by
// tests/bench/predict_bench.cc. Widths are in natural logarithms (0.1 is about 10 %).
struct Prior {
  double width = 0.1;          // of the spread of one need
  double width_runs = 2;       // for how many runs that counts
  double novelty = 0.5;        // runs that a run unlike all others counts for
  double novelty_width = 0.5;  // how far those are
  double beyond_kill = 0.4;    // mean distance of a need beyond the limit that it was killed at
  double grain = 0;            // bytes or seconds
  double fixed_cost = 0;       // of a request, beside its amount; bytes or seconds
  double together_s = 0;       // runs submitted within as much are one when it comes to novelty
};
// Of memory and walltime. Of runs that share a name alone, run times differ far more, and those
// submitted together are mostly of one kind.
const Prior& PriorOf(Resource resource, Basis basis);

// The largest need of a successful run. A need is set aside as an outlier when it is older than
// kOutlierRuns runs that tell and all of those needed at most half of it.
struct Floor {
  double need = 0;  // 0: no successful run
  bool outliers = false;
};
inline constexpr std::size_t kOutlierRuns = 30;
Floor FloorOf(std::span<const Observation> needs);

class NeedModel {
 public:
  // `needs` oldest first; nothing where there are none.
  static std::optional<NeedModel> Create(std::span<const Observation> needs, const Prior& prior);

  // The chance that the next need is at most `amount`.
  double Chance(double amount) const;
  // The smallest amount whose chance is at least q, 0 < q < 1 (to a millionth).
  double Quantile(double q) const;

  // `amount`, or the larger one where log(amount + fixed cost) + cost_of_failure · (1 - Chance) is
  // least (within e^0.5 times `amount`).
  double WorthWhile(double amount, double cost_of_failure) const;

  // FloorOf the needs.
  double floor() const { return floor_; }
  bool outliers() const { return outliers_; }
  bool recent_weigh_more() const { return half_life_ > 0; }
  bool killed_last() const { return killed_last_; }
  double killed_at() const { return killed_at_; }  // where killed_last()
  // Where the newest run was killed at a limit: the chance that the next one is the same again, so
  // that its need is above that limit. Three in four until there are kills whose next run tells.
  double repeats() const { return repeats_; }
  double width() const { return width_; }
  std::size_t runs() const { return runs_; }

 private:
  struct Kernel {
    double x = 0;
    double mass = 0;
    double below = 0;  // Σ mass of kernels up to this one
    double left = 0;   // Σ mass·exp(-(x - x_j)/width) over them
    double right = 0;  // the same over this one and those above
  };
  NeedModel() = default;
  void WeighNeeds(std::span<const Observation> needs);
  void PlaceNovelty(double effective_runs);
  void SumKernels();
  double ToLog(double amount) const;
  double FromLog(double x) const;
  double LogCdf(double x) const;  // of a run that is not a repetition
  double LogChance(double x) const;

  std::vector<Kernel> kernels_;
  double width_ = 0;
  double novelty_mass_ = 0;
  double novelty_centre_ = 0;
  double beyond_mass_ = 0;  // beyond a kill that no need was above of
  double beyond_from_ = 0;
  Prior prior_;
  double half_life_ = 0;  // 0: all runs weigh the same
  bool killed_last_ = false;
  double killed_at_ = 0;
  double repeats_ = 0;
  double floor_ = 0;
  bool outliers_ = false;
  std::size_t runs_ = 0;
};

}  // namespace expanse::intelligence::predict
