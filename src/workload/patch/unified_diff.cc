#include "workload/patch/unified_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace expanse::workload {
namespace {

constexpr std::size_t kContext = 3;
// Beyond these the changed middle is written as removed and added in one: a patch of ours changes a
// few lines, so only files that have nothing in common come here.
constexpr std::size_t kMaxChanges = 1024;
constexpr std::size_t kMaxSteps = std::size_t{32} << 20;
constexpr std::string_view kNoNewline = "\\ No newline at end of file\n";

// Lines with their newline; the last may lack it. Empty for an empty text.
std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::size_t size = newline == std::string_view::npos ? text.size() : newline + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

// Lines of `before` [a, a_end) become lines of `after` [b, b_end); either may be empty.
struct Change {
  std::size_t a = 0;
  std::size_t a_end = 0;
  std::size_t b = 0;
  std::size_t b_end = 0;
};

// Numbers for lines, equal for equal lines, so that comparing two is one comparison.
struct Numbered {
  std::vector<std::uint32_t> a;
  std::vector<std::uint32_t> b;
};

Numbered Number(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  const auto number = [&numbers](const std::vector<std::string_view>& lines) {
    std::vector<std::uint32_t> result;
    result.reserve(lines.size());
    for (std::string_view line : lines)
      result.push_back(
          numbers.emplace(line, static_cast<std::uint32_t>(numbers.size())).first->second);
    return result;
  };
  Numbered numbered;
  numbered.a = number(a);
  numbered.b = number(b);
  return numbered;
}

// Appends a step of the edit script (removal of line x, or insertion of line y before line x), in
// falling order.
void Prepend(std::vector<Change>& reversed, std::size_t x, std::size_t y, bool removal) {
  const Change step{.a = x, .a_end = x + (removal ? 1 : 0), .b = y, .b_end = y + (removal ? 0 : 1)};
  if (!reversed.empty() && reversed.back().a == step.a_end && reversed.back().b == step.b_end) {
    reversed.back().a = step.a;
    reversed.back().b = step.b;
    return;
  }
  reversed.push_back(step);
}

// Myers, "An O(ND) Difference Algorithm and Its Variations" (1986): furthest reaching x on each
// diagonal, kept for every number of changes to walk back along. Nothing when it would take too
// long.
class Myers {
 public:
  Myers(const Numbered& lines, const Change& middle)
      : lines_(lines),
        base_a_(middle.a),
        base_b_(middle.b),
        n_(static_cast<std::int64_t>(middle.a_end - middle.a)),
        m_(static_cast<std::int64_t>(middle.b_end - middle.b)) {}

  bool Search() {
    std::vector<std::int32_t> last = {0, 0, 0};  // diagonals -1, 0, 1 before the first step
    for (std::int64_t d = 0; d <= static_cast<std::int64_t>(kMaxChanges); ++d) {
      std::vector<std::int32_t> row(static_cast<std::size_t>(2 * d + 3), 0);
      for (std::int64_t k = -d; k <= d; k += 2) {
        std::int64_t x = d == 0 ? 0 : FromLast(last, d, k);
        x = Slide(x, x - k);
        row[static_cast<std::size_t>(k + d + 1)] = static_cast<std::int32_t>(x);
        if (steps_ > kMaxSteps) return false;
        if (x == n_ && x - k == m_) {
          rows_.push_back(std::move(row));
          return true;
        }
      }
      last = row;
      rows_.push_back(std::move(row));
    }
    return false;
  }

  std::vector<Change> Walk() const {
    std::vector<Change> reversed;
    std::int64_t x = n_;
    std::int64_t y = m_;
    for (std::int64_t d = static_cast<std::int64_t>(rows_.size()) - 1; d > 0; --d) {
      const std::vector<std::int32_t>& last = rows_[static_cast<std::size_t>(d - 1)];
      const std::int64_t k = x - y;
      const bool down = GoesDown(last, d, k);
      const std::int64_t from_x = At(last, d - 1, down ? k + 1 : k - 1);
      const std::int64_t from_y = from_x - (down ? k + 1 : k - 1);
      Prepend(reversed, base_a_ + static_cast<std::size_t>(from_x),
              base_b_ + static_cast<std::size_t>(from_y), !down);
      x = from_x;
      y = from_y;
    }
    std::reverse(reversed.begin(), reversed.end());
    return reversed;
  }

 private:
  // A row of d changes holds diagonals -d-1 … d+1.
  static std::int64_t At(const std::vector<std::int32_t>& row, std::int64_t d, std::int64_t k) {
    return row[static_cast<std::size_t>(k + d + 1)];
  }
  static bool GoesDown(const std::vector<std::int32_t>& last, std::int64_t d, std::int64_t k) {
    return k == -d || (k != d && At(last, d - 1, k - 1) < At(last, d - 1, k + 1));
  }
  static std::int64_t FromLast(const std::vector<std::int32_t>& last, std::int64_t d,
                               std::int64_t k) {
    return GoesDown(last, d, k) ? At(last, d - 1, k + 1) : At(last, d - 1, k - 1) + 1;
  }
  std::int64_t Slide(std::int64_t x, std::int64_t y) {
    ++steps_;
    while (x < n_ && y < m_ &&
           lines_.a[base_a_ + static_cast<std::size_t>(x)] ==
               lines_.b[base_b_ + static_cast<std::size_t>(y)]) {
      ++x;
      ++y;
      ++steps_;
    }
    return x;
  }

  const Numbered& lines_;
  std::size_t base_a_;
  std::size_t base_b_;
  std::int64_t n_;
  std::int64_t m_;
  std::size_t steps_ = 0;
  std::vector<std::vector<std::int32_t>> rows_;
};

std::vector<Change> FindChanges(const std::vector<std::string_view>& a,
                                const std::vector<std::string_view>& b) {
  const Numbered lines = Number(a, b);
  Change middle{.a = 0, .a_end = a.size(), .b = 0, .b_end = b.size()};
  while (middle.a < middle.a_end && middle.b < middle.b_end &&
         lines.a[middle.a] == lines.b[middle.b]) {
    ++middle.a;
    ++middle.b;
  }
  while (middle.a < middle.a_end && middle.b < middle.b_end &&
         lines.a[middle.a_end - 1] == lines.b[middle.b_end - 1]) {
    --middle.a_end;
    --middle.b_end;
  }
  if (middle.a == middle.a_end && middle.b == middle.b_end) return {};
  if (middle.a == middle.a_end || middle.b == middle.b_end) return {middle};
  Myers myers(lines, middle);
  if (!myers.Search()) return {middle};
  return myers.Walk();
}

void WriteLine(std::string& out, char mark, std::string_view line) {
  out.push_back(mark);
  out.append(line);
  if (!line.ends_with('\n')) out.append("\n").append(kNoNewline);
}

// "12,3"; ",1" is left out, and an empty range stands after the line before it.
std::string Range(std::size_t begin, std::size_t count) {
  if (count == 1) return fmt::format("{}", begin + 1);
  return fmt::format("{},{}", count == 0 ? begin : begin + 1, count);
}

// Changes [first, last) with the context around and between them.
void WriteHunk(std::string& out, const std::vector<std::string_view>& a,
               const std::vector<std::string_view>& b, std::vector<Change>::const_iterator first,
               std::vector<Change>::const_iterator last) {
  const std::size_t lead = std::min(first->a, kContext);
  const std::size_t tail = std::min(a.size() - std::prev(last)->a_end, kContext);
  const std::size_t begin = first->a - lead;
  const std::size_t end = std::prev(last)->a_end + tail;
  const std::size_t b_begin = first->b - lead;
  const std::size_t b_end = std::prev(last)->b_end + tail;
  out += fmt::format("@@ -{} +{} @@\n", Range(begin, end - begin), Range(b_begin, b_end - b_begin));
  std::size_t at = begin;
  for (auto change = first; change != last; ++change) {
    for (; at < change->a; ++at) WriteLine(out, ' ', a[at]);
    for (; at < change->a_end; ++at) WriteLine(out, '-', a[at]);
    for (std::size_t i = change->b; i < change->b_end; ++i) WriteLine(out, '+', b[i]);
  }
  for (; at < end; ++at) WriteLine(out, ' ', a[at]);
}

// As git writes names: quoted where they hold control characters, quotes or backslashes; a tab
// after names with spaces, so that `patch` sees where they end.
std::string HeaderName(std::string_view prefix, std::string_view path) {
  const std::string name = std::string(prefix).append(path);
  const auto odd = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"' || c == '\\';
  };
  if (std::any_of(name.begin(), name.end(), odd)) {
    std::string quoted = "\"";
    for (char c : name) {
      if (c == '"' || c == '\\')
        quoted.append({'\\', c});
      else if (odd(c))
        quoted += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
      else
        quoted.push_back(c);
    }
    return quoted + "\"";
  }
  return name.find(' ') == std::string::npos ? name : name + "\t";
}

std::unexpected<base::Error> Syntax(std::size_t line, std::string_view what) {
  return base::Fail(base::Code::kInvalidArgument, "diff.syntax",
                    fmt::format("line {} of the diff: {}", line, what));
}

std::unexpected<base::Error> Mismatch(std::size_t line) {
  return base::Fail(base::Code::kFailedPrecondition, "diff.mismatch",
                    fmt::format("the text does not have what the diff's line {} says", line));
}

struct HunkHead {
  std::size_t begin = 0;  // of the old lines, from 0
  std::size_t count = 0;
  std::size_t b_begin = 0;
  std::size_t b_count = 0;
};

// "12,3" or "12" after its sign.
bool ParseRange(std::string_view text, std::size_t& begin, std::size_t& count) {
  const std::size_t comma = text.find(',');
  const auto start = base::ParseUnsignedDigits(text.substr(0, comma));
  const auto size = comma == std::string_view::npos
                        ? std::optional<std::uint64_t>(1)
                        : base::ParseUnsignedDigits(text.substr(comma + 1));
  if (!start || !size || (*start == 0 && *size != 0)) return false;
  begin = *size == 0 ? *start : *start - 1;
  count = *size;
  return true;
}

std::optional<HunkHead> ParseHead(std::string_view line) {
  HunkHead head;
  if (!line.starts_with("@@ -")) return std::nullopt;
  line.remove_prefix(4);
  const std::size_t plus = line.find(" +");
  const std::size_t close = line.find(" @@");
  if (plus == std::string_view::npos || close == std::string_view::npos || close < plus + 2)
    return std::nullopt;
  if (!ParseRange(line.substr(0, plus), head.begin, head.count) ||
      !ParseRange(line.substr(plus + 2, close - plus - 2), head.b_begin, head.b_count))
    return std::nullopt;
  return head;
}

class Applier {
 public:
  Applier(std::string_view diff, std::string_view before)
      : diff_(Lines(diff)), before_(Lines(before)) {}

  base::Result<std::string> Run() {
    if (diff_.empty()) return Rest();
    if (diff_.size() < 3 || !diff_[0].starts_with("--- ") || !diff_[1].starts_with("+++ "))
      return Syntax(1, "\"---\", \"+++\" and a hunk expected");
    for (at_ = 2; at_ < diff_.size();) EXPANSE_RETURN_IF_ERROR(Hunk());
    return Rest();
  }

 private:
  base::Result<std::string> Rest() {
    while (old_ < before_.size()) EXPANSE_RETURN_IF_ERROR(Take());
    return std::move(result_);
  }
  base::Status Take() { return Append(before_[old_++]); }
  base::Status Append(std::string_view line) {
    // Only the last line of a file may lack its newline.
    if (!result_.empty() && !result_.ends_with('\n')) return Mismatch(at_);
    result_.append(line);
    ++new_;
    return {};
  }

  base::Status Hunk() {
    const std::size_t head_line = at_ + 1;
    const std::optional<HunkHead> head = ParseHead(diff_[at_++]);
    if (!head) return Syntax(head_line, "a hunk \"@@ -… +… @@\" expected");
    if (head->begin < old_ || head->begin > before_.size()) return Mismatch(head_line);
    while (old_ < head->begin) EXPANSE_RETURN_IF_ERROR(Take());
    if (new_ != head->b_begin) return Mismatch(head_line);
    std::size_t left = head->count;
    std::size_t right = head->b_count;
    while (left > 0 || right > 0) EXPANSE_RETURN_IF_ERROR(Line(left, right));
    return {};
  }

  base::Status Line(std::size_t& left, std::size_t& right) {
    if (at_ == diff_.size()) return Syntax(at_, "the hunk ends early");
    const char mark = diff_[at_].front();
    std::string_view line = diff_[at_].substr(1);
    const std::size_t number = ++at_;
    if (mark != ' ' && mark != '-' && mark != '+')
      return Syntax(number, "a line of a hunk begins with \" \", \"-\" or \"+\"");
    if (!line.ends_with('\n')) return Syntax(number, "the diff is cut off");
    if (at_ < diff_.size() && diff_[at_].starts_with('\\')) {
      line.remove_suffix(1);
      ++at_;
    }
    if ((mark != '+' && left == 0) || (mark != '-' && right == 0))
      return Syntax(number, "the hunk has more lines than it says");
    if (mark != '+') {
      if (old_ == before_.size() || before_[old_] != line) return Mismatch(number);
      ++old_;
      --left;
    }
    if (mark == '-') return {};
    --right;
    return Append(line);
  }

  std::vector<std::string_view> diff_;
  std::vector<std::string_view> before_;
  std::size_t at_ = 0;
  std::size_t old_ = 0;
  std::size_t new_ = 0;
  std::string result_;
};

}  // namespace

std::string MakeUnifiedDiff(std::string_view path, std::string_view before,
                            std::string_view after) {
  const std::vector<std::string_view> a = Lines(before);
  const std::vector<std::string_view> b = Lines(after);
  const std::vector<Change> changes = FindChanges(a, b);
  if (changes.empty()) return {};
  std::string out = "--- " + HeaderName("a/", path) + "\n+++ " + HeaderName("b/", path) + "\n";
  for (auto first = changes.begin(); first != changes.end();) {
    auto last = std::next(first);
    while (last != changes.end() && last->a - std::prev(last)->a_end <= 2 * kContext) ++last;
    WriteHunk(out, a, b, first, last);
    first = last;
  }
  return out;
}

base::Result<std::string> ApplyUnifiedDiff(std::string_view diff, std::string_view before) {
  return Applier(diff, before).Run();
}

}  // namespace expanse::workload
