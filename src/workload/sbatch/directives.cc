#include "workload/sbatch/directives.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace expanse::workload::sbatch {
namespace {

constexpr std::string_view kMagic = "#SBATCH";
constexpr std::string_view kBlanks = " \t\v\f\r";
constexpr std::size_t kMaxWords = 10'000;         // of all directives
constexpr std::size_t kMaxNotes = 1000;           // later ones are left out
constexpr std::size_t kMaxComponents = 256;       // Slurm's own bound is 128 unless it is raised
constexpr std::string_view kOldMagic = "#SLURM";  // still read, with a warning

std::unexpected<Refusal> Refuse(std::uint32_t line, std::uint32_t column, std::string reason,
                                std::string message) {
  return std::unexpected(Refusal{line, column, std::move(reason), std::move(message)});
}

// "{{ name }}", "{% if %}" and "<your time>" of a line: to sbatch they would be several words, but
// what it will read is what they become.
class TemplateMarks {
 public:
  explicit TemplateMarks(std::string_view line) : line_(line) {
    for (std::size_t k = 0; k < kPairs.size(); ++k) last_[k] = line.rfind(kPairs[k].second);
  }

  // Where the one that begins at `i` ends; `i` if none begins there. Asking from left to right and
  // going on at the end of each is linear: nothing is searched that is not there.
  std::size_t Skip(std::size_t i) const {
    for (std::size_t k = 0; k < kPairs.size(); ++k) {
      const auto& [open, close] = kPairs[k];
      if (last_[k] == std::string_view::npos || last_[k] < i + open.size()) continue;
      if (line_.substr(i).starts_with(open))
        return line_.find(close, i + open.size()) + close.size();
    }
    return i;
  }

 private:
  static constexpr auto kPairs = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"{{", "}}"}, {"{%", "%}"}, {"<", ">"}});
  std::string_view line_;
  std::array<std::size_t, kPairs.size()> last_{};
};

// One line of directives from which words are taken.
struct Line {
  Line(std::string_view words, std::size_t at, std::uint32_t line)
      : text(words), begin(at), number(line), templates(words) {}
  std::string_view text;     // the whole line, without '\n'
  std::size_t begin = 0;     // of the line in the file
  std::uint32_t number = 0;  // from 1
  std::size_t next = 0;      // first byte of text that is not read yet
  TemplateMarks templates;
};

// The next word as sbatch's get_argument takes it; nothing at the end of the line or at a comment.
Parsed<std::optional<Piece>> NextWord(Line& line) {
  std::size_t i = line.next;
  while (i < line.text.size() && base::IsSpace(line.text[i])) ++i;
  if (i < line.text.size() && line.text[i] == ':')
    return Refuse(line.number, static_cast<std::uint32_t>(i + 1), "unexpected_colon",
                  "sbatch takes no \":\" here; components of a het job are parted by "
                  "\"#SBATCH hetjob\"");
  Piece word;
  bool escaped = false;
  char quote = 0;
  const std::size_t first = i;
  std::size_t template_end = 0;  // bytes before it belong to the word, whatever they are
  for (; i < line.text.size(); ++i) {
    const char c = line.text[i];
    if (!escaped && quote == 0 && i >= template_end) template_end = line.templates.Skip(i);
    if (i < template_end) {
      // taken as it is
    } else if (quote == 0 && base::IsSpace(c)) {
      break;  // a backslash does not join words
    } else if (escaped) {
      escaped = false;
    } else if (c == '\\') {
      escaped = true;
      continue;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
        continue;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      continue;
    } else if (c == '#') {
      break;
    }
    word.text.push_back(c);
    word.at.push_back(static_cast<std::uint32_t>(line.begin + i));
  }
  if (quote != 0)
    return Refuse(line.number, static_cast<std::uint32_t>(first + 1), "unmatched_quote",
                  std::string("unmatched ") + quote + " in a directive");
  line.next = i;
  word.end = word.at.empty() ? line.begin + i : word.at.back() + 1;
  if (word.text.empty()) {
    line.next = line.text.size();
    return std::nullopt;
  }
  return word;
}

// True where the next word is "hetjob" or "packjob", as such: quoted it is a word like others.
bool AtComponentMark(const Line& line) {
  const std::size_t begin = line.text.find_first_not_of(kBlanks, line.next);
  if (begin == std::string_view::npos) return false;
  const std::string_view word =
      line.text.substr(begin, line.text.find_first_of(" \t\v\f\r#", begin) - begin);
  return word == "hetjob" || word == "packjob";
}

// "# SBATCH --mem=1G", "#sbatch -n 2", "  #SBATCH -n 2": meant as directives, and comments to
// sbatch.
bool IsNearMiss(std::string_view line) {
  std::string_view rest = base::Trim(line);
  if (!rest.starts_with('#')) return false;
  rest.remove_prefix(1);
  rest = base::Trim(rest);
  if (rest.size() < 7 || base::ToLower(rest.substr(0, 6)) != "sbatch") return false;
  rest.remove_prefix(6);
  return base::IsSpace(rest.front()) && base::Trim(rest).starts_with('-');
}

bool IsTemplateLine(std::string_view line) {
  const std::string_view rest = base::Trim(line);
  return rest.starts_with("{%") || rest.starts_with("{{") || rest.starts_with("{#") ||
         rest.starts_with("<%");
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { directives_.components.emplace_back(); }

  Parsed<Directives> Read() {
    if (auto checked = CheckWhole(); !checked) return std::unexpected(checked.error());
    std::size_t at = 0;
    bool in_head = true;
    for (std::uint32_t number = 1; at < text_.size(); ++number) {
      const std::size_t newline = std::min(text_.find('\n', at), text_.size());
      Line line(text_.substr(at, newline - at), at, number);
      const std::size_t next = std::min(newline + 1, text_.size());
      if (in_head && IsCommand(line.text)) {
        in_head = false;
        directives_.body = at;
        if (IsTemplateLine(line.text))
          return Refuse(number, 1, "templated", "a template; it can be read once it is rendered");
      }
      if (auto read = in_head ? ReadHead(line, next) : ReadBody(line); !read)
        return std::unexpected(read.error());
      at = next;
    }
    if (in_head) directives_.body = text_.size();
    return std::move(directives_);
  }

 private:
  Parsed<bool> CheckWhole() {
    if (base::Trim(text_).empty()) return Refuse(0, 0, "empty", "an empty script");
    if (const std::size_t at = text_.find('\0'); at != std::string_view::npos) {
      const Place place = PlaceOf(text_, at, at);
      return Refuse(place.line, place.column, "null_character",
                    "a NUL byte; sbatch takes no such script");
    }
    if (!text_.starts_with("#!"))
      return Refuse(1, 1, "no_shebang",
                    "sbatch takes no script whose first line does not begin with #! and the path "
                    "of an interpreter");
    if (const std::size_t at = text_.find("\r\n"); at != std::string_view::npos) {
      directives_.newline = "\r\n";
      Add(PlaceOf(text_, at, at).line, "dos_line_breaks",
          "lines end in CR LF; sbatch refuses the script until dos2unix has changed them");
    }
    const std::size_t first = std::min(text_.find('\n'), text_.size());
    directives_.components.front().insert_at = std::min(first + 1, text_.size());
    return true;
  }

  static bool IsCommand(std::string_view line) {
    const std::string_view rest = base::Trim(line);
    return !rest.empty() && rest.front() != '#';
  }

  Parsed<bool> ReadHead(Line& line, std::size_t next) {
    if (line.text.starts_with(kMagic)) {
      line.next = kMagic.size();
      return ReadWords(line, next);
    }
    if (line.text.starts_with(kOldMagic)) {
      Add(line.number, "old_directive", "#SLURM is read as #SBATCH; write #SBATCH");
      line.next = kOldMagic.size();
      return ReadWords(line, next);
    }
    if (ReadForeign(line)) return true;
    if (IsNearMiss(line.text))
      Add(line.number, "not_a_directive",
          "a comment to sbatch: a directive begins with #SBATCH in the first column");
    return true;
  }

  Parsed<bool> ReadWords(Line& line, std::size_t next) {
    if (AtComponentMark(line)) {
      if (line.text.contains("packjob"))
        Add(line.number, "old_directive", "packjob is the old word for hetjob");
      if (directives_.components.size() == kMaxComponents)
        return Refuse(line.number, 1, "too_many_components",
                      "more components than Slurm takes in a het job");
      directives_.components.emplace_back();
      IgnoreRest(line);
    }
    while (!AtComponentMark(line)) {
      auto word = NextWord(line);
      if (!word) return std::unexpected(word.error());
      if (!word->has_value()) break;
      if (++words_ > kMaxWords) return TooMany(line);
      directives_.components.back().words.push_back(*std::move(*word));
    }
    IgnoreRest(line);
    directives_.components.back().insert_at = next;
    return true;
  }

  // sbatch reads nothing behind the mark of a component, and only a line that begins with it
  // begins a component.
  void IgnoreRest(Line& line) {
    if (!AtComponentMark(line)) return;
    std::string_view rest = base::Trim(line.text.substr(line.next));
    rest.remove_prefix(std::min(rest.find_first_of(" \t"), rest.size()));
    rest = base::Trim(rest);
    const bool begins = base::Trim(line.text.substr(0, line.next)).size() <= kMagic.size();
    if ((!rest.empty() && rest.front() != '#') || !begins)
      Add(line.number, "ignored_behind_mark",
          "sbatch ignores what stands on the line behind hetjob or packjob, and the word itself "
          "where it does not begin the line");
    line.next = line.text.size();
  }

  // True where it is a line of another scheduler. What is wrong with it matters only where sbatch
  // is to obey such lines.
  bool ReadForeign(Line& line) {
    const std::string_view scheduler = line.text.starts_with("#PBS")    ? "PBS"
                                       : line.text.starts_with("#BSUB") ? "BSUB"
                                                                        : "";
    if (scheduler.empty()) return false;
    ForeignLine foreign{.scheduler = scheduler, .words = {}, .refusal = {}};
    line.next = 1 + scheduler.size();
    for (;;) {
      auto word = NextWord(line);
      if (word && word->has_value() && ++words_ > kMaxWords) word = TooMany(line);
      if (!word) foreign.refusal = std::move(word.error());
      if (!word || !word->has_value()) break;
      foreign.words.push_back(*std::move(*word));
    }
    if (directives_.foreign.size() < kMaxWords) directives_.foreign.push_back(std::move(foreign));
    return true;
  }

  // sbatch looks for lines of other schedulers in the whole file.
  Parsed<bool> ReadBody(Line& line) {
    if (ReadForeign(line)) return true;
    if (line.text.starts_with(kMagic))
      Add(line.number, "ignored_after_command",
          "sbatch reads no directive behind the first command");
    return true;
  }

  static std::unexpected<Refusal> TooMany(const Line& line) {
    return Refuse(line.number, 1, "too_large", "more words in directives than anybody writes");
  }

  void Add(std::uint32_t line, std::string reason, std::string message) {
    if (directives_.notes.size() == kMaxNotes) return;
    directives_.notes.push_back({line, std::move(reason), std::move(message)});
  }

  std::string_view text_;
  Directives directives_;
  std::size_t words_ = 0;
};

}  // namespace

Piece Piece::Part(std::size_t first, std::size_t last) const {
  Piece part;
  last = std::min(last, text.size());
  first = std::min(first, last);
  part.text = text.substr(first, last - first);
  part.at.assign(at.begin() + static_cast<std::ptrdiff_t>(first),
                 at.begin() + static_cast<std::ptrdiff_t>(last));
  part.end = last == text.size() ? end : (last == 0 ? begin_offset() : at[last - 1] + 1);
  return part;
}

Parsed<Directives> ReadDirectives(std::string_view text) { return Reader(text).Read(); }

bool LooksTemplated(std::string_view text) {
  for (const std::string_view mark : {"{{", "{%", "<%", "%(", "[[", "@@", "<<", "$", "`"})
    if (text.contains(mark)) return true;
  for (const auto& [open, close] :
       {std::pair('<', '>'), std::pair('{', '}'), std::pair('@', '@')}) {
    const std::size_t first = text.find(open);
    const std::size_t last = text.rfind(close);
    if (first != std::string_view::npos && last != std::string_view::npos && last > first)
      return true;
  }
  return false;
}

}  // namespace expanse::workload::sbatch
