// The words of a batch script's directives, as sbatch takes them from the file: which lines count,
// quotes, backslashes and comments inside them, components of a heterogeneous job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload::sbatch {

// A word (or the rest of one) after quotes and backslashes are taken out, and where each of its
// bytes stands in the file.
struct Piece {
  std::string text;
  std::vector<std::uint32_t> at;  // one offset for each byte of text
  std::size_t end = 0;            // of the last byte; where an empty piece would stand

  Piece From(std::size_t first) const { return Part(first, text.size()); }
  Piece Part(std::size_t first, std::size_t last) const;  // bytes [first, last)
  std::size_t begin_offset() const { return at.empty() ? end : at.front(); }
};

struct Component {
  std::vector<Piece> words;
  std::size_t insert_at = 0;  // behind its last line: where one more directive can be written
};

// "#PBS -l walltime=1:00:00": sbatch understands some of these.
struct ForeignLine {
  std::string_view scheduler;  // "PBS", "BSUB"
  std::vector<Piece> words;
  std::optional<Refusal> refusal;  // why it cannot be read
};

struct Directives {
  std::vector<Component> components;  // at least one
  std::vector<ForeignLine> foreign;   // of the whole file, behind the first command too
  std::vector<Note> notes;
  std::size_t body = 0;  // the first byte of the first command's line; the text's size without one
  std::string newline = "\n";  // the file's own
};

// Refuses with "empty", "no_shebang", "null_character", "unmatched_quote", "unexpected_colon",
// "too_many_components", "too_large" (words), "templated". Linear in the text.
Parsed<Directives> ReadDirectives(std::string_view text);

// True where a template engine, a wrapper script or a person is meant to fill something in:
// "{{ mem }}", "${MEM}", "<hours>", "@TIME@", "{memory}".
bool LooksTemplated(std::string_view text);

}  // namespace expanse::workload::sbatch
