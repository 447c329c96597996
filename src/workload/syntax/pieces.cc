#include "workload/syntax/pieces.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>

namespace expanse::workload::syntax {
namespace {

constexpr std::size_t kInsideSomething = std::numeric_limits<std::size_t>::max();

struct Line {
  std::size_t begin = 0;
  std::size_t indent = 0;  // kInsideSomething where no statement begins
};

// Knows at each byte whether it is within a string or brackets.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // From the beginning of a line to the beginning of the next one.
  Line Next() {
    Line line{.begin = at_, .indent = kInsideSomething};
    const bool inside = quote_ != 0 || depth_ > 0;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    const char first = at_ < text_.size() ? text_[at_] : '\n';
    const bool continues = first == '\n' || first == '\r' || first == '#' || Closes(first);
    if (!inside && !continues && !ContinuesABlock()) line.indent = at_ - line.begin;
    while (at_ < text_.size() && text_[at_] != '\n') Step();
    if (at_ < text_.size()) ++at_;
    if (quote_ != 0 && !triple_) quote_ = 0;  // a string in one quote ends with its line
    return line;
  }
  bool done() const { return at_ >= text_.size(); }

 private:
  static bool Closes(char c) { return c == ')' || c == ']' || c == '}'; }

  bool ContinuesABlock() const {
    const std::string_view rest = text_.substr(at_, 8);
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{"else", "elif", "except", "finally", "case "},
        [&](std::string_view word) { return rest.starts_with(word); });
  }

  void Step() {
    const char c = text_[at_];
    if (c == '\\' && at_ + 1 < text_.size()) {
      at_ += text_[at_ + 1] == '\n' ? 1 : 2;
      return;
    }
    if (quote_ != 0) {
      const std::string_view end = text_.substr(at_, 3);
      if (c == quote_ && (!triple_ || end == std::string(3, quote_))) {
        at_ += triple_ ? 3 : 1;
        quote_ = 0;
        return;
      }
    } else if (c == '\'' || c == '"') {
      quote_ = c;
      triple_ = text_.substr(at_, 3) == std::string(3, c);
      at_ += triple_ ? 3 : 1;
      return;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth_;
    } else if (Closes(c) && depth_ > 0) {
      --depth_;
    }
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  char quote_ = 0;
  bool triple_ = false;
};

}  // namespace

std::vector<std::size_t> CutPython(std::string_view text, std::size_t bytes) {
  std::vector<std::size_t> ends;
  Scanner scanner(text);
  std::size_t start = 0;
  // The best cut in each half of the piece under way: a late one, unless only an early one exists.
  Line early;
  Line late;
  const auto begin_piece = [&](std::size_t at) {
    start = at;
    early = late = {.begin = at, .indent = kInsideSomething};
  };
  const auto cut_before = [&](std::size_t limit) {
    while (limit - start > bytes) {
      const bool has_late = late.begin > start;
      const bool use_late =
          has_late && (late.indent != kInsideSomething || early.indent == kInsideSomething);
      const std::size_t cut = use_late ? late.begin : early.begin;
      begin_piece(cut > start ? cut : start + bytes);
      ends.push_back(start);
    }
  };
  begin_piece(0);
  while (!scanner.done()) {
    const Line line = scanner.Next();
    cut_before(line.begin);
    Line& best = line.begin - start < bytes / 2 ? early : late;
    if (line.begin > start && line.indent <= best.indent) best = line;
  }
  cut_before(text.size());
  ends.push_back(text.size());
  return ends;
}

}  // namespace expanse::workload::syntax
