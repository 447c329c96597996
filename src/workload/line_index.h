// Line and column of many bytes of one text: an index made once, a binary search for each. Keeps no
// reference to the text.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload {

class LineIndex {
 public:
  explicit LineIndex(std::string_view text);
  Place PlaceOf(std::size_t begin, std::size_t end) const;

 private:
  std::vector<std::size_t> starts_;
};

}  // namespace expanse::workload
