// Edits of jobspecs: what is planned can be applied, and the edited text asks for what was wanted
// (the planner checks it; here it is checked again from outside). The first bytes choose the part,
// the quantity and the amount.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/nomad/nomad.h"
#include "workload/patch/unified_diff.h"

using namespace expanse;
using workload::Quantity;

namespace {

double Asked(const workload::Part& part, Quantity quantity) {
  if (quantity == Quantity::kMemory)
    return static_cast<double>(part.request.memory_bytes.value_or(0));
  if (quantity == Quantity::kCpu) return part.request.cpu_cores.value_or(0);
  if (quantity == Quantity::kGpuMemory)
    return static_cast<double>(part.request.gpu_memory_bytes.value_or(0));
  return part.request.gpu_count.value_or(0);
}

double Amount(Quantity quantity, const std::uint8_t* data) {
  if (quantity == Quantity::kMemory) return (1 << 20) * (10.0 + 16 * data[0] + data[1]);
  if (quantity == Quantity::kGpuMemory) return (1 << 30) * (1.0 + data[0]);
  return 1 + data[0] % 100;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 4, size - 4);
  const auto parsed = workload::ParseNomad(text);
  if (!parsed) return 0;
  constexpr Quantity kQuantities[] = {Quantity::kMemory, Quantity::kCpu, Quantity::kGpu,
                                      Quantity::kGpuMemory};
  const Quantity quantity = kQuantities[data[0] % 4];
  const double amount = Amount(quantity, data + 2);
  const workload::Wanted wanted{
      .part = data[1] % parsed->parts.size(), .quantity = quantity, .amount = amount};
  const auto edits = workload::PlanNomadEdits(text, *parsed, {wanted});
  if (!edits) {
    EXPANSE_CHECK(edits.error().reason.starts_with("patch."));
    return 0;
  }
  const auto edited = workload::ApplyEdits(text, *edits);
  EXPANSE_CHECK(edited.has_value());
  const auto again = workload::ParseNomad(*edited);
  EXPANSE_CHECK(again.has_value() && again->parts.size() == parsed->parts.size());
  EXPANSE_CHECK(Asked(again->parts[wanted.part], quantity) == amount);
  for (std::size_t i = 0; i < parsed->parts.size(); ++i) {
    if (i == wanted.part) continue;
    EXPANSE_CHECK(again->parts[i].request == parsed->parts[i].request);
  }
  const std::string diff = workload::MakeUnifiedDiff("f", text, *edited);
  EXPANSE_CHECK(workload::ApplyUnifiedDiff(diff, text) == *edited);
  return 0;
}
