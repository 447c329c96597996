// Where a value that a manifest lacks can be written, and with what around it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "workload/kubernetes/document.h"
#include "workload/submission.h"

namespace expanse::workload::kubernetes {

struct NewValue {
  std::vector<std::string_view> path;  // keys below the map; the last one is missing there
  bool quoted = false;                 // in JSON: a string
  // Entries of `map` itself behind which to write, the first that there is; before its first entry
  // where none is given.
  std::vector<std::string_view> behind = {};
};

// Block style: lines of their own, indented as their neighbours. Flow style and JSON: inside the
// braces. Nothing where the map or a part of the path is behind an anchor, a template or no map.
std::optional<Insertion> FindInsertion(const Document& document, NodeId map, const NewValue& value,
                                       Quantity quantity, Bound bound);

}  // namespace expanse::workload::kubernetes
