// Unified diffs: what is made of two texts leads from one to the other; a diff from outside is
// applied or refused, never more.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workload/patch/unified_diff.h"

using namespace expanse;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find('\0');
  const std::string_view first = text.substr(0, cut);
  const std::string_view second =
      cut == std::string_view::npos ? std::string_view() : text.substr(cut + 1);
  const std::string diff = workload::MakeUnifiedDiff("path", first, second);
  EXPANSE_CHECK(diff.empty() == (first == second));
  const auto applied = workload::ApplyUnifiedDiff(diff, first);
  EXPANSE_CHECK(applied.has_value() && *applied == second);
  const auto foreign = workload::ApplyUnifiedDiff(first, second);
  if (!foreign) EXPANSE_CHECK(foreign.error().reason.starts_with("diff."));
  return 0;
}
