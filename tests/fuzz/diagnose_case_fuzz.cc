// Case files are given to `expanse runbook test`: each is refused with a reason or read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "intelligence/diagnose/case_file.h"

using namespace expanse::intelligence;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cases = diagnose::ParseCases(text, "case.json");
  if (!cases && (cases.error().reason.empty() || cases.error().message.empty())) std::abort();
  return 0;
}
