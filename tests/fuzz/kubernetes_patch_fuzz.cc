// Edits of Kubernetes manifests: what is planned can be applied, and the edited text asks for what
// was wanted (the planner checks it; here it is checked again from outside). The first bytes choose
// the part, the quantity and the amount.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/kubernetes/kubernetes.h"
#include "workload/patch/unified_diff.h"

using namespace expanse;

namespace {

double Asked(const workload::Part& part, workload::Quantity quantity) {
  if (quantity == workload::Quantity::kMemory)
    return static_cast<double>(part.request.memory_bytes.value_or(0));
  if (quantity == workload::Quantity::kCpu) return part.request.cpu_cores.value_or(0);
  if (quantity == workload::Quantity::kGpu) return part.request.gpu_count.value_or(0);
  return static_cast<double>(part.request.walltime_s.value_or(0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  const auto parsed = workload::ParseKubernetes(text);
  if (!parsed) return 0;
  constexpr workload::Quantity kQuantities[] = {workload::Quantity::kMemory,
                                                workload::Quantity::kCpu, workload::Quantity::kGpu,
                                                workload::Quantity::kWalltime};
  const workload::Quantity quantity = kQuantities[data[0] % 4];
  double amount = std::exp2(data[2] % 40) * (1 + data[3]);
  if (quantity == workload::Quantity::kCpu) amount = (1 + data[2]) / 8.0;
  if (quantity == workload::Quantity::kGpu) amount = data[2] % 17;
  const workload::Wanted wanted{
      .part = data[1] % parsed->parts.size(), .quantity = quantity, .amount = amount};
  // The second one meets what the first has written.
  std::vector<workload::Wanted> all = {wanted};
  if (data[3] % 2 == 1 && quantity != workload::Quantity::kCpu)
    all.push_back({.part = wanted.part, .quantity = workload::Quantity::kCpu, .amount = 2});
  const auto edits = workload::PlanKubernetesEdits(text, *parsed, all);
  if (!edits) {
    EXPANSE_CHECK(edits.error().reason.starts_with("patch."));
    return 0;
  }
  const auto edited = workload::ApplyEdits(text, *edits);
  EXPANSE_CHECK(edited.has_value());
  const auto again = workload::ParseKubernetes(*edited);
  EXPANSE_CHECK(again.has_value() && again->parts.size() == parsed->parts.size());
  const double asked = Asked(again->parts[wanted.part], quantity);
  EXPANSE_CHECK(asked >= amount - 1 && asked <= amount * 1.01 + 1);
  const std::string diff = workload::MakeUnifiedDiff("f", text, *edited);
  EXPANSE_CHECK(workload::ApplyUnifiedDiff(diff, text) == *edited);
  return 0;
}
