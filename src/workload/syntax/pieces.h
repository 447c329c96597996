// Where a long Python text can be cut so that what is on both sides parses on its own.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace expanse::workload::syntax {

// Ends of consecutive pieces of at most `bytes` bytes; the last is text.size(). Cuts are before
// lines that begin a statement (outside strings and brackets), those with the least indentation
// first and as late as possible; where there is no such line within a piece, at a line's end, and
// where there is not even that, anywhere. Linear.
std::vector<std::size_t> CutPython(std::string_view text, std::size_t bytes);

}  // namespace expanse::workload::syntax
