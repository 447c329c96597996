// The policies that the trace bench compares: each sets a limit for the next run of a group from
// the runs that ended before it, and says what it asks for after that limit was exceeded. Formulas
// as published; sources stand at each class in policies.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intelligence/predict/run.h"

namespace expanse::bench {

using intelligence::predict::Resource;

// A run that ended, as a policy learns it.
struct Past {
  double end_s = 0;
  double need = 0;
  double runtime_s = 0;
  std::optional<double> input_size;
};

// The run to come, and where that is known what its user asked for.
struct Next {
  double submit_s = 0;
  std::optional<double> requested;
  std::optional<double> input_size;
};

// One group's state of one policy, for one resource.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual void Learn(const Past& past) = 0;
  // Nothing where neither history nor the request says anything.
  virtual std::optional<double> Limit(const Next& next) = 0;
  // After `failed` was not enough.
  virtual double Retry(const Next& next, double failed) = 0;
};

struct PolicyKind {
  std::string_view name;
  std::string_view what;
  std::unique_ptr<Policy> (*make)(Resource);
};

// All but ours, in the order in which they are printed.
const std::vector<PolicyKind>& Baselines();

}  // namespace expanse::bench
