// Words and operators of a POSIX or bash script, with the expansions whose result stands in the
// script: quotes, variables that were given literals, ${name:-default}. Whatever else a shell would
// have to do (command substitution, arithmetic, globs, braces, templates) leaves the word as
// written and marks it. Any bytes; linear, and what expansions may add is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload::source {

// What a variable holds: one word, or the words of an array.
struct ShellValue {
  std::vector<Word> words;
  bool operator==(const ShellValue&) const = default;
};
// Null: not known.
using ShellLookup = std::function<const ShellValue*(std::string_view name)>;

struct ShellToken {
  enum class Kind : std::uint8_t { kEnd, kNewline, kOperator, kWord };
  Kind kind = Kind::kEnd;
  std::size_t begin = 0;  // bytes of the text
  std::size_t end = 0;
  std::string_view raw;     // as written
  std::vector<Word> words;  // of a word: none for "$EMPTY", several for "${ARRAY[@]}"
  bool quoted = false;      // any of it: then it is no keyword
  bool array = false;       // NAME=(…): `words` are the elements
  // Of a newline: the here-documents that were announced on the line, in order.
  std::vector<std::string_view> documents;

  bool is(std::string_view text) const { return kind != Kind::kEnd && !quoted && raw == text; }
};

class ShellLexer {
 public:
  // Of bytes [begin, end) of `text`, which must outlive the lexer and its tokens. `expanded` counts
  // the bytes that expansions added; beyond a bound there are no more.
  ShellLexer(std::string_view text, std::size_t begin, std::size_t end, ShellLookup lookup,
             std::size_t* expanded);

  ShellToken Next();
  // The delimiter of a here-document, right behind its "<<" or "<<-".
  void ReadDocumentDelimiter(bool strip_tabs);
  // Behind "((": skips to behind the "))" that ends it.
  void SkipArithmetic();
  std::size_t position() const { return at_; }
  // The next byte that is not blank; 0 at the end.
  char PeekPastBlanks() const;

 private:
  struct Building;
  struct Document {
    std::string delimiter;
    bool strip_tabs = false;
  };

  char Peek(std::size_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }
  bool AtEnd() const { return at_ >= end_; }
  void SkipBlanks();
  std::vector<std::string_view> ReadDocuments();
  ShellToken ReadOperator();
  ShellToken ReadWord();
  void ReadWordInto(Building* word);
  void ReadArray(ShellToken* token);
  void ReadSingleQuoted(Building* word);
  void ReadAnsiQuoted(Building* word);
  void ReadDoubleQuoted(Building* word);
  void ReadExpansion(Building* word, bool quoted);
  void ReadBraceExpansion(Building* word, bool quoted);
  void Insert(Building* word, std::string_view name, std::string_view written, bool quoted);
  void Keep(Building* word, std::size_t begin);  // as written, and unresolved
  void SkipParentheses();                        // from behind "(" to behind the matching ")"
  void SkipBackquotes();

  std::string_view text_;
  std::size_t at_;
  std::size_t end_;
  ShellLookup lookup_;
  std::vector<Document> documents_;
  std::size_t* expanded_;
  int depth_ = 0;  // of ${a:-${b:-…}}
};

bool IsShellName(std::string_view text);
// The length of "NAME=" or "NAME+=" at the beginning of a word; 0 where there is none.
std::size_t AssignmentPrefix(std::string_view raw);

}  // namespace expanse::workload::source
