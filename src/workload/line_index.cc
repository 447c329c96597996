#include "workload/line_index.h"

#include <algorithm>

namespace expanse::workload {

LineIndex::LineIndex(std::string_view text) : starts_{0} {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    starts_.push_back(at + 1);
}

Place LineIndex::PlaceOf(std::size_t begin, std::size_t end) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), begin);
  const auto line = static_cast<std::uint32_t>(after - starts_.begin());
  return {.begin = begin,
          .end = end,
          .line = line,
          .column = static_cast<std::uint32_t>(begin - *(after - 1) + 1)};
}

}  // namespace expanse::workload
