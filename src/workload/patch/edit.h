// In-place edits of a text: byte-exact outside the replaced bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/submission.h"

namespace expanse::workload {

// Replaces bytes [begin, end); begin == end inserts.
struct Edit {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string replacement;
  bool operator==(const Edit&) const = default;
};

// A resource of one part that should be asked for instead: totals of the part, in the units of
// Request (cores, bytes, devices, seconds).
struct Wanted {
  std::size_t part = 0;  // index into Submission::parts
  Quantity quantity = Quantity::kMemory;
  double amount = 0;
};

// Fails with edit.overlap or edit.range. Edits may come in any order.
base::Result<std::string> ApplyEdits(std::string_view text, std::vector<Edit> edits);

}  // namespace expanse::workload
