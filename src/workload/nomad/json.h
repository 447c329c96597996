// JSON jobspecs as the same tree as HCL: what the API takes ({"Job": {"TaskGroups": …}}) and HCL's
// own JSON syntax ({"job": {"name": {…}}}). Places are those of the JSON text.
#pragma once

#include <string_view>

#include "workload/nomad/hcl.h"

namespace expanse::workload::hcl {

// Strict JSON (RFC 8259) as kNull, kBool, kNumber, kString, kTuple, kObject. Bounded as hcl.h says.
Parsed<Expression> ParseJson(std::string_view text);

// True for text that is JSON rather than HCL: its first character is "{" or "[".
bool LooksLikeJson(std::string_view text);

// A file of either kind as the body of an HCL file: a job block with groups and tasks, whatever the
// names of the API; `api` says whether they are. Refuses with "syntax", "not_a_workload", and as
// ParseBody.
Parsed<Body> ParseJsonBody(std::string_view text, bool& api);

}  // namespace expanse::workload::hcl
