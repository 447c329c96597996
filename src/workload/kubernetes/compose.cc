#include "workload/kubernetes/compose.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace expanse::workload::kubernetes {

// Every earlier edit that the new one touches is taken into it; between them stand bytes of the
// original.
void EditSequence::Apply(const Edit& edit) {
  std::vector<Edit> before;
  std::vector<Edit> after;
  std::ptrdiff_t shift = 0;  // of the current text against the original, left of the edit
  Edit merged = edit;
  bool first = true;
  for (Edit& old : edits_) {
    const std::size_t begin =
        static_cast<std::size_t>(static_cast<std::ptrdiff_t>(old.begin) + shift);
    const std::size_t end = begin + old.replacement.size();
    const auto grown = static_cast<std::ptrdiff_t>(old.replacement.size()) -
                       static_cast<std::ptrdiff_t>(old.end - old.begin);
    if (end < edit.begin) {
      before.push_back(std::move(old));
      shift += grown;
    } else if (begin > edit.end) {
      after.push_back(std::move(old));
    } else {
      // What the old edit wrote left and right of the new one stays.
      const std::size_t left = edit.begin > begin ? edit.begin - begin : 0;
      const std::size_t right = end > edit.end ? end - edit.end : 0;
      merged.replacement.insert(0, old.replacement.substr(0, left));
      merged.replacement.append(old.replacement.substr(old.replacement.size() - right));
      const auto shifted = [&shift](std::size_t at) {
        return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(at) - shift);
      };
      if (first) merged.begin = std::min(old.begin, shifted(edit.begin));
      first = false;
      shift += grown;
      merged.end = std::max(old.end, edit.end > end ? shifted(edit.end) : old.end);
    }
  }
  if (first) {
    merged.begin = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(edit.begin) - shift);
    merged.end = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(edit.end) - shift);
  }
  text_.replace(edit.begin, edit.end - edit.begin, edit.replacement);
  edits_ = std::move(before);
  edits_.push_back(std::move(merged));
  edits_.insert(edits_.end(), after.begin(), after.end());
}

std::vector<Edit> EditSequence::Edits() const {
  std::vector<Edit> edits;
  for (const Edit& edit : edits_) {
    if (original_.substr(edit.begin, edit.end - edit.begin) != edit.replacement)
      edits.push_back(edit);
  }
  return edits;
}

}  // namespace expanse::workload::kubernetes
