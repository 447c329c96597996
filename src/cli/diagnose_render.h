// An answer of `diagnose` as text: sections of `name value` rows in the order of the reference.
// Pure.
#pragma once

#include <string>

#include "cli/table.h"
#include "expanse/intelligence/v1/diagnose.pb.h"

namespace expanse::cli {

// Rows of which nothing is known are left out, but for the confidence. Every row ends with a
// newline, whatever the server sent; text of users and programs is escaped.
std::string RenderDiagnosis(const intelligence::v1::DiagnoseResult& result, bool cached,
                            const TableStyle& style);

}  // namespace expanse::cli
