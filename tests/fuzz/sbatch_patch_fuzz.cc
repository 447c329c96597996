// Whatever the script: either there is a reason why it cannot be edited, or the edited script asks
// for what was wanted, and for as many nodes and tasks as before.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "workload/patch/edit.h"
#include "workload/sbatch/sbatch.h"

using namespace expanse::workload;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

// Two bytes choose what is wanted of the first and of the last part.
std::vector<Wanted> WantedOf(std::uint8_t what, std::uint8_t much, std::size_t parts) {
  const std::size_t part = (what & 0x80) != 0 ? parts - 1 : 0;
  std::vector<Wanted> wanted;
  if ((what & 1) != 0) wanted.push_back({part, Quantity::kCpu, 1.0 + much % 40});
  if ((what & 2) != 0)
    wanted.push_back({part, Quantity::kMemory, std::ldexp(1.0 + much % 19, 20 + much % 17)});
  if ((what & 4) != 0) wanted.push_back({part, Quantity::kGpu, 1.0 + much % 9});
  if ((what & 8) != 0) wanted.push_back({part, Quantity::kWalltime, 45.0 * much * much + 1});
  return wanted;
}

double Amount(const Request& request, Quantity quantity) {
  if (quantity == Quantity::kCpu) return request.cpu_cores.value_or(0);
  if (quantity == Quantity::kGpu) return request.gpu_count.value_or(0);
  if (quantity == Quantity::kMemory) return static_cast<double>(request.memory_bytes.value_or(0));
  return static_cast<double>(request.walltime_s.value_or(0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto before = ParseSbatch(text);
  if (!before) return 0;
  const std::vector<Wanted> wanted = WantedOf(data[0], data[1], before->parts.size());
  const auto edits = PlanSbatchEdits(text, *before, wanted);
  if (!edits) {
    Check(edits.error().reason.starts_with("patch."));
    Check(edits.error().code != expanse::base::Code::kInternal);
    return 0;
  }
  const auto edited = ApplyEdits(text, *edits);
  Check(edited.has_value());
  const auto after = ParseSbatch(*edited);
  Check(after && after->parts.size() == before->parts.size());
  for (std::size_t i = 0; i < after->parts.size(); ++i) {
    Check(after->parts[i].request.nodes == before->parts[i].request.nodes);
    Check(after->parts[i].request.tasks == before->parts[i].request.tasks);
  }
  for (const Wanted& each : wanted)
    Check(Amount(after->parts[each.part].request, each.quantity) >= each.amount);
  // Asking for the same again changes nothing.
  if (!edits->empty()) {
    std::vector<Wanted> same;
    for (const Wanted& each : wanted)
      same.push_back(
          {each.part, each.quantity, Amount(after->parts[each.part].request, each.quantity)});
    const auto again = PlanSbatchEdits(*edited, *after, same);
    Check(again && again->empty());
  }
  return 0;
}
