// Unified diffs of one file, as `diff -u` writes and `patch` reads them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::workload {

// The diff from `before` to `after` with three lines of context and "a/<path>", "b/<path>" as
// names; empty when they are equal. Any bytes; a last line without newline is marked as diff does.
// Linear for edits of a few lines, bounded by O(lines · changes) otherwise.
std::string MakeUnifiedDiff(std::string_view path, std::string_view before, std::string_view after);

// `before` with the diff applied. Strict: context and removed lines must stand exactly where the
// diff says. Fails with diff.syntax or diff.mismatch.
base::Result<std::string> ApplyUnifiedDiff(std::string_view diff, std::string_view before);

}  // namespace expanse::workload
