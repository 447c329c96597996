// Placeholders of template languages in a manifest: Go and Helm `{{ … }}`, Jinja `{{ }}`, `{% %}`,
// `{# #}`, GitHub `${{ }}`, Terraform `%{ if }` and `${ }`. They are masked with as many bytes, so
// that the rest can be read as YAML and every position stays.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "workload/kubernetes/document.h"

namespace expanse::workload::kubernetes {

// One line of a placeholder.
struct Placeholder {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool control = false;     // if, range, for, end, …: decides what else is there
  bool comment = false;     // changes nothing: comments, assignments
  bool in_comment = false;  // of the YAML around it
};

struct Masked {
  std::string text;
  std::vector<Placeholder> placeholders;  // in text order
};

// `dollar`: `${…}` too. Linear.
Masked MaskPlaceholders(std::string_view text, bool dollar);

// Gives scalars their placeholders back and marks them. Refuses with "templated" when a placeholder
// is no part of a value.
bool Unmask(const Masked& masked, Builder& builder, Refusal& refusal);

}  // namespace expanse::workload::kubernetes
