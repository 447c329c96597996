// Batch scripts are anything their users type. Every setting stands where it says it does, what is
// not known has a reason, and writing back what is asked for changes nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "workload/sbatch/sbatch.h"

using namespace expanse::workload;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckPart(std::string_view text, const Part& part) {
  for (const Setting& setting : part.settings) {
    const Place& place = setting.place;
    Check(place.begin <= place.end && place.end <= text.size());
    Check(text.substr(place.begin, place.end - place.begin) == setting.written);
    Check(place == PlaceOf(text, place.begin, place.end));
    Check(setting.value.has_value() == setting.unresolved.empty());
    Check(!setting.name.empty());
  }
  for (const Insertion& insertion : part.insertions)
    Check(insertion.offset <= text.size() && !insertion.before.empty());
  for (const Command& command : part.commands)
    Check(!command.words.empty() && command.place.end <= text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = ParseSbatch(text);
  if (!parsed) {
    Check(!parsed.error().reason.empty() && !parsed.error().message.empty());
    return 0;
  }
  Check(!parsed->parts.empty());
  std::vector<Wanted> own;
  for (std::size_t i = 0; i < parsed->parts.size(); ++i) {
    CheckPart(text, parsed->parts[i]);
    const Request& request = parsed->parts[i].request;
    if (request.cpu_cores) own.push_back({i, Quantity::kCpu, *request.cpu_cores});
    if (request.gpu_count) own.push_back({i, Quantity::kGpu, *request.gpu_count});
    if (request.memory_bytes)
      own.push_back({i, Quantity::kMemory, static_cast<double>(*request.memory_bytes)});
    if (request.walltime_s)
      own.push_back({i, Quantity::kWalltime, static_cast<double>(*request.walltime_s)});
  }
  const auto edits = PlanSbatchEdits(text, *parsed, own);
  Check(edits && edits->empty());
  return 0;
}
