#include "bench/predict_parts/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <queue>

#include "intelligence/predict/limits.h"
#include "intelligence/predict/needs.h"
#include "intelligence/predict/probability.h"
#include "intelligence/predict/recommend.h"
#include "intelligence/predict/units.h"

namespace expanse::bench {
namespace {

using intelligence::predict::Ending;
using intelligence::predict::LimitModel;
using intelligence::predict::Run;

constexpr int kMaxTries = 24;
constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr Resource kResources[] = {Resource::kMemory, Resource::kWalltime};

// FNV-1a: the same split on every machine.
std::uint64_t Hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 14695981039346656037ULL ^ (seed * 1099511628211ULL);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash ^ (hash >> 29);
}

// What the run needed; nothing where that is not known (it failed of its own, or nothing was
// measured). A run that was killed at a limit counts as needing just more than that: it fails under
// every limit up to its own, as it did, and nobody knows what would have been enough.
std::optional<double> NeedOf(const TraceRun& run, Resource resource) {
  constexpr double kJustMore = 1 + 1e-9;
  const bool memory = resource == Resource::kMemory;
  if (run.ending == (memory ? Ending::kOutOfMemory : Ending::kTimeout)) {
    const auto& limit = memory ? run.requested_memory_bytes : run.requested_walltime_s;
    if (!limit) return std::nullopt;
    return memory ? *limit * kJustMore : std::max(run.runtime_s, *limit * kJustMore);
  }
  if (run.ending != Ending::kSuccess) return std::nullopt;
  if (memory) return run.memory_bytes;
  return std::max(run.runtime_s, 1.0);
}
std::optional<double> RequestOf(const TraceRun& run, Resource resource) {
  return resource == Resource::kMemory ? run.requested_memory_bytes : run.requested_walltime_s;
}

// GiB-hours for a whole run under a memory limit; core-hours that a walltime limit reserves.
double Cost(const TraceRun& run, Resource resource, double limit) {
  if (resource == Resource::kMemory) return limit / kGiB * run.runtime_s / 3600;
  return limit * run.cores / 3600;
}

intelligence::predict::Amounts AskedFor(const TraceRun& run) {
  intelligence::predict::Amounts amounts;
  amounts.cpu_cores = run.cores;
  amounts.memory_bytes = run.requested_memory_bytes;
  amounts.walltime_s = run.requested_walltime_s;
  return amounts;
}

intelligence::predict::Basis BasisOf(const TraceRun& run) {
  return run.same_source ? intelligence::predict::Basis::kExactBundle
                         : intelligence::predict::Basis::kSameName;
}

Run Recorded(const TraceRun& run) {
  Run recorded;
  recorded.ending = run.ending;
  recorded.submitted_micros = static_cast<std::int64_t>(run.submit_s * 1e6);
  recorded.requested = AskedFor(run);
  recorded.runtime_s = run.runtime_s;
  recorded.memory_peak_bytes = run.memory_bytes;
  recorded.input_size = run.input_size;
  return recorded;
}

class GroupReplay {
 public:
  GroupReplay(std::vector<const TraceRun*> runs, const ReplayOptions& options, TraceScore& score)
      : runs_(std::move(runs)), options_(options), score_(score) {
    for (const Resource resource : kResources) {
      auto& policies = policies_.emplace_back();
      for (const PolicyKind& kind : Baselines()) policies.push_back(kind.make(resource));
    }
  }

  void Play() {
    for (const TraceRun* run : runs_) {
      while (!running_.empty() && running_.top()->end_s <= run->submit_s) {
        Learn(*running_.top());
        running_.pop();
      }
      Predict(*run);
      running_.push(run);
    }
  }

 private:
  struct EndsLater {
    bool operator()(const TraceRun* a, const TraceRun* b) const {
      return a->end_s != b->end_s ? a->end_s > b->end_s : a > b;
    }
  };

  void Learn(const TraceRun& run) {
    history_.push_back(Recorded(run));
    for (std::size_t r = 0; r < std::size(kResources); ++r) {
      const auto need = NeedOf(run, kResources[r]);
      if (!need) continue;
      known_[r] = true;
      for (auto& policy : policies_[r])
        policy->Learn({run.end_s, *need, run.runtime_s, run.input_size});
    }
  }

  std::span<const Run> History() const {
    const std::size_t count = std::min(history_.size(), intelligence::predict::kMaxRuns);
    return std::span(history_).last(count);
  }

  intelligence::predict::Recommendation Ours(std::span<const Run> history, const TraceRun& run) {
    intelligence::predict::PredictOptions predict;
    predict.target = options_.target;
    predict.input_size = run.input_size;
    predict.round_to_units = options_.round_to_units;
    const auto start = std::chrono::steady_clock::now();
    auto result = Recommend(history, BasisOf(run), AskedFor(run), predict);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    score_.recommendation_us.push_back(took.count());
    return result;
  }

  void Predict(const TraceRun& run) {
    const auto history = History();
    const auto ours = Ours(history, run);
    ScoreCompletion(run);
    for (std::size_t r = 0; r < std::size(kResources); ++r) {
      const Resource resource = kResources[r];
      const auto need = NeedOf(run, resource);
      const auto request = RequestOf(run, resource);
      // The same runs for every policy: those of which something is known beforehand.
      if (!need || (!request && !known_[r])) continue;
      ResourceScore& score = score_.resources[r];
      score.used += Cost(run, resource, *need);
      const auto& advice = resource == Resource::kMemory ? ours.memory : ours.walltime;
      PlayedRun played{&run, resource, *need, history.size(), {}};
      std::vector<double> limits;
      const auto play = [&](PolicyScore& policy, auto play_one) {
        const double before = policy.allocated;
        const std::optional<double> first = play_one();
        if (first) limits.push_back(*first);
        played.limits.push_back({first.value_or(0), policy.allocated - before});
      };
      play(score.policies[0], [&] {
        if (advice.amount) PlayOurs(score.policies[0], run, resource, *need, *advice.amount);
        return advice.amount;
      });
      const Next next{run.submit_s, request, run.input_size};
      for (std::size_t p = 0; p < policies_[r].size(); ++p) {
        PolicyScore& policy = score.policies[p + 1];
        play(policy,
             [&] { return PlayBaseline(policy, *policies_[r][p], run, resource, *need, next); });
      }
      if (options_.on_run) options_.on_run(played);
      ScoreForecast(score, run, resource, *need, limits);
    }
  }

  double Rounded(Resource resource, double limit) const {
    return options_.round_to_units ? intelligence::predict::RoundUpToUnit(resource, limit) : limit;
  }

  static void Count(PolicyScore& score, const TraceRun& run, Resource resource, double limit,
                    bool first, bool failed) {
    if (first) ++score.runs;
    if (first && failed) ++score.failed_first;
    ++score.tries;
    score.allocated += Cost(run, resource, limit);
  }

  std::optional<double> PlayBaseline(PolicyScore& score, Policy& policy, const TraceRun& run,
                                     Resource resource, double need, const Next& next) {
    auto limit = policy.Limit(next);
    if (!limit) return std::nullopt;
    // A user's own request stands as it was written.
    const bool own = next.requested && *limit == *next.requested;
    *limit = own ? *limit : Rounded(resource, *limit);
    const double first_limit = *limit;
    for (int tries = 0; tries < kMaxTries; ++tries) {
      const bool failed = need > *limit;
      Count(score, run, resource, *limit, tries == 0, failed);
      if (!failed) break;
      limit = Rounded(resource, std::max(policy.Retry(next, *limit), *limit * 1.01));
    }
    return first_limit;
  }

  // Every failed try is a recorded run that was killed at its limit, and we are asked again.
  void PlayOurs(PolicyScore& score, const TraceRun& run, Resource resource, double need,
                double limit) {
    std::vector<Run> history;
    for (int tries = 0; tries < kMaxTries; ++tries) {
      const bool failed = need > limit;
      Count(score, run, resource, limit, tries == 0, failed);
      if (!failed) break;
      if (history.empty()) history.assign(History().begin(), History().end());
      Run killed = Recorded(run);
      killed.memory_peak_bytes.reset();
      if (resource == Resource::kMemory) {
        killed.ending = Ending::kOutOfMemory;
        killed.requested.memory_bytes = limit;
      } else {
        killed.ending = Ending::kTimeout;
        killed.requested.walltime_s = limit;
        killed.runtime_s = limit;
      }
      history.push_back(killed);
      const auto again = Ours(history, run);
      const auto& advice = resource == Resource::kMemory ? again.memory : again.walltime;
      limit = std::max(advice.amount.value_or(2 * limit), limit * 1.01);
    }
  }

  void ScoreForecast(ResourceScore& score, const TraceRun& run, Resource resource, double need,
                     const std::vector<double>& limits) {
    const auto history = History();
    const auto model = ModelLimit(resource, history, BasisOf(run), AskedFor(run), run.input_size);
    if (!model) return;
    ForecastScore& forecast = score.forecast;
    for (const double limit : limits) {
      const double chance = model->model.Chance(limit);
      const double fits = need <= limit ? 1 : 0;
      ++forecast.forecasts;
      forecast.brier += (chance - fits) * (chance - fits);
      auto& bin = forecast.bins[std::min<std::size_t>(9, static_cast<std::size_t>(chance * 10))];
      ++bin.forecasts;
      bin.predicted += chance;
      bin.happened += fits;
    }
    const double p10 = model->model.Quantile(0.1);
    const double p90 = model->model.Quantile(0.9);
    ++forecast.intervals;
    forecast.pinball_p10 += need >= p10 ? 0.1 * (need - p10) : 0.9 * (p10 - need);
    forecast.pinball_p90 += need >= p90 ? 0.9 * (need - p90) : 0.1 * (p90 - need);
    if (need < p10)
      forecast.below_p10 += 1;
    else if (need > p90)
      forecast.above_p90 += 1;
    else
      forecast.coverage += 1;
  }

  void ScoreCompletion(const TraceRun& run) {
    if (!intelligence::predict::TellsOfCompletion(run.ending)) return;
    const auto completion = CompletionProbability(History(), BasisOf(run));
    if (!completion) return;
    const double happened = run.ending == Ending::kSuccess ? 1 : 0;
    ++score_.completion.forecasts;
    score_.completion.brier += (completion->mean - happened) * (completion->mean - happened);
    score_.completion.brier_of_base_rate += happened;  // a count until Replay is done
  }

  std::vector<const TraceRun*> runs_;
  const ReplayOptions& options_;
  TraceScore& score_;
  std::vector<std::vector<std::unique_ptr<Policy>>> policies_;
  std::vector<Run> history_;
  bool known_[std::size(kResources)] = {};
  std::priority_queue<const TraceRun*, std::vector<const TraceRun*>, EndsLater> running_;
};

void Finish(TraceScore& score) {
  for (ResourceScore& resource : score.resources) {
    ForecastScore& forecast = resource.forecast;
    if (forecast.forecasts > 0) forecast.brier /= static_cast<double>(forecast.forecasts);
    for (auto& bin : forecast.bins) {
      if (bin.forecasts == 0) continue;
      bin.predicted /= static_cast<double>(bin.forecasts);
      bin.happened /= static_cast<double>(bin.forecasts);
    }
  }
  CompletionScore& completion = score.completion;
  if (completion.forecasts == 0) return;
  const auto n = static_cast<double>(completion.forecasts);
  const double rate = completion.brier_of_base_rate / n;
  completion.brier /= n;
  completion.brier_of_base_rate = rate * (1 - rate);
}

}  // namespace

namespace {

bool Wanted(const TraceRun& run, const ReplayOptions& options) {
  if (options.half == Half::kAll) return true;
  return (Hash(run.group, options.seed) % 2 == 0) == (options.half == Half::kTuned);
}

// Sums of forecasts become means; pinball losses shares of the mean need.
void FinishIntervals(ForecastScore& forecast, double mean_need) {
  if (forecast.intervals == 0) return;
  const auto n = static_cast<double>(forecast.intervals);
  forecast.pinball_p10 /= n * mean_need;
  forecast.pinball_p90 /= n * mean_need;
  forecast.coverage /= n;
  forecast.below_p10 /= n;
  forecast.above_p90 /= n;
}

ResourceScore EmptyScore(Resource resource) {
  ResourceScore score;
  score.resource = resource;
  score.policies.push_back({.policy = "ours"});
  for (const PolicyKind& kind : Baselines())
    score.policies.push_back({.policy = std::string(kind.name)});
  return score;
}

}  // namespace

TraceScore Replay(const Trace& trace, const ReplayOptions& options) {
  TraceScore score;
  score.trace = trace.name;
  for (const Resource resource : kResources) score.resources.push_back(EmptyScore(resource));
  std::map<std::string_view, std::vector<const TraceRun*>> groups;
  double need_sum[std::size(kResources)] = {};
  double need_count[std::size(kResources)] = {};
  for (const TraceRun& run : trace.runs) {
    if (!Wanted(run, options)) continue;
    groups[run.group].push_back(&run);
    ++score.runs;
    for (std::size_t r = 0; r < std::size(kResources); ++r) {
      const auto need = NeedOf(run, kResources[r]);
      if (!need) continue;
      need_sum[r] += *need;
      need_count[r] += 1;
    }
  }
  score.groups = groups.size();
  for (auto& [name, runs] : groups) GroupReplay(std::move(runs), options, score).Play();
  Finish(score);
  for (std::size_t r = 0; r < std::size(kResources); ++r)
    FinishIntervals(score.resources[r].forecast, need_sum[r] / need_count[r]);
  return score;
}

std::vector<std::string> DominatedBy(const ResourceScore& score) {
  std::vector<std::string> better;
  const PolicyScore& ours = score.policies[0];
  for (std::size_t p = 1; p < score.policies.size(); ++p) {
    const PolicyScore& other = score.policies[p];
    // A policy that answers for fewer runs cannot be compared.
    if (other.runs != ours.runs || ours.runs == 0) continue;
    if (other.failed_first < ours.failed_first && other.allocated < ours.allocated)
      better.push_back(other.policy);
  }
  return better;
}

}  // namespace expanse::bench
