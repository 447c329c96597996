#include "workload/patch/edit.h"

#include <algorithm>

namespace expanse::workload {

base::Result<std::string> ApplyEdits(std::string_view text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string result;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.end < edit.begin || edit.end > text.size())
      return base::Fail(base::Code::kInternal, "edit.range", "an edit lies outside the text");
    if (edit.begin < at)
      return base::Fail(base::Code::kInternal, "edit.overlap", "two edits touch the same bytes");
    result.append(text.substr(at, edit.begin - at)).append(edit.replacement);
    at = edit.end;
  }
  result.append(text.substr(at));
  return result;
}

}  // namespace expanse::workload
