// What nvidia-smi writes: lines through one parser, as from a stream.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collect/gpu/smi_csv.h"
#include "collect/kernel_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace expanse::collect;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  SmiCsvParser parser;
  std::string_view line;
  while (NextLine(text, line)) {
    const SmiLine parsed = parser.Take(line);
    if (const auto* reading = std::get_if<GpuReading>(&parsed)) {
      // What the rest relies on: an identity, and no percentage that is none.
      if (reading->uuid.empty() || reading->util_pct.value_or(0) > 100) std::abort();
      if (!(reading->memory_used_bytes.value_or(0) >= 0)) std::abort();
    }
    if (const auto* process = std::get_if<GpuProcess>(&parsed);
        process != nullptr && process->pid <= 0)
      std::abort();
  }
  return 0;
}
