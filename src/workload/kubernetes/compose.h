// Edits made one after the other, as edits of the text before the first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/patch/edit.h"

namespace expanse::workload::kubernetes {

class EditSequence {
 public:
  explicit EditSequence(std::string_view original) : original_(original), text_(original) {}

  const std::string& text() const { return text_; }
  // `edit` is in bytes of text(), which becomes the edited one.
  void Apply(const Edit& edit);
  // In order, apart from each other; what changed nothing is left out.
  std::vector<Edit> Edits() const;

 private:
  std::string_view original_;
  std::string text_;
  std::vector<Edit> edits_;  // of the original, sorted
};

}  // namespace expanse::workload::kubernetes
