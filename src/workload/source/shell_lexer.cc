#include "workload/source/shell_lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace expanse::workload::source {
namespace {

constexpr std::size_t kMaxExpanded = std::size_t{1} << 20;
constexpr int kMaxDepth = 16;

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameChar(char c) { return IsNameStart(c) || base::IsDigit(c); }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool EndsWord(char c) { return IsBlank(c) || std::string_view("\n;&|<>()").contains(c); }

// Set by the system or the scheduler when the script runs: never taken from a default in the text.
bool IsGivenByEnvironment(std::string_view name) {
  constexpr std::array kPrefixes = {"SLURM",      "PBS",   "SGE", "LSB", "NOMAD",
                                    "KUBERNETES", "FLUX_", "JOB", "PMI", "OMPI"};
  constexpr std::array kNames = {"HOME",     "USER",    "PATH",       "PWD",       "TMPDIR",
                                 "HOSTNAME", "LOGNAME", "SHELL",      "UID",       "EDITOR",
                                 "TMP",      "TEMP",    "NSLOTS",     "RANK",      "LANG",
                                 "SCRATCH",  "WORK",    "LOCAL_RANK", "WORLD_SIZE"};
  return std::ranges::any_of(kPrefixes, [&](auto* prefix) { return name.starts_with(prefix); }) ||
         std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

bool IsShellName(std::string_view text) {
  return !text.empty() && IsNameStart(text.front()) && std::ranges::all_of(text, IsNameChar);
}

std::size_t AssignmentPrefix(std::string_view raw) {
  std::size_t at = 0;
  while (at < raw.size() && IsNameChar(raw[at])) ++at;
  if (at == 0 || !IsNameStart(raw[0])) return 0;
  if (raw.substr(at).starts_with("+=")) return at + 2;
  return raw.substr(at).starts_with("=") ? at + 1 : 0;
}

// A word under construction: the words that are complete, and the one that is not.
struct ShellLexer::Building {
  std::vector<Word> words = {};
  Word current = {};
  bool started = false;  // quotes make a word of nothing
  bool quoted = false;
  bool open_brace = false;  // an unquoted "{", and behind it what makes it an expansion
  bool alternatives = false;

  void Add(std::string_view text) {
    current.text += text;
    started = true;
  }
  void EndWord() {
    if (started) words.push_back(std::exchange(current, {}));
    current = {};
    started = open_brace = alternatives = false;
  }
};

ShellLexer::ShellLexer(std::string_view text, std::size_t begin, std::size_t end,
                       ShellLookup lookup, std::size_t* expanded)
    : text_(text),
      at_(begin),
      end_(std::min(end, text.size())),
      lookup_(std::move(lookup)),
      expanded_(expanded) {}

char ShellLexer::PeekPastBlanks() const {
  std::size_t at = at_;
  while (at < end_ && IsBlank(text_[at])) ++at;
  return at < end_ ? text_[at] : '\0';
}

void ShellLexer::SkipBlanks() {
  while (!AtEnd()) {
    if (IsBlank(Peek())) {
      ++at_;
    } else if (Peek() == '\\' && Peek(1) == '\n') {
      at_ += 2;
    } else if (Peek() == '\\' && Peek(1) == '\r' && Peek(2) == '\n') {
      at_ += 3;
    } else if (Peek() == '#') {
      at_ = std::min(text_.find('\n', at_), end_);
    } else {
      return;
    }
  }
}

ShellToken ShellLexer::Next() {
  SkipBlanks();
  if (AtEnd()) return {.kind = ShellToken::Kind::kEnd, .begin = end_, .end = end_, .raw = {}};
  const std::size_t begin = at_;
  if (Peek() == '\n') {
    ++at_;
    ShellToken token{.kind = ShellToken::Kind::kNewline,
                     .begin = begin,
                     .end = at_,
                     .raw = text_.substr(begin, 1)};
    token.documents = ReadDocuments();
    return token;
  }
  const bool substitution = (Peek() == '<' || Peek() == '>') && Peek(1) == '(';
  if (EndsWord(Peek()) && !substitution) return ReadOperator();
  return ReadWord();
}

std::vector<std::string_view> ShellLexer::ReadDocuments() {
  std::vector<std::string_view> bodies;
  for (const Document& document : std::exchange(documents_, {})) {
    const std::size_t begin = at_;
    std::size_t end = at_;
    while (!AtEnd()) {
      const std::size_t line_end = std::min(text_.find('\n', at_), end_);
      std::string_view line = text_.substr(at_, line_end - at_);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (document.strip_tabs)
        line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      end = at_;
      at_ = std::min(line_end + 1, end_);
      if (line == document.delimiter) break;
      end = at_;
    }
    bodies.push_back(text_.substr(begin, end - begin));
  }
  return bodies;
}

ShellToken ShellLexer::ReadOperator() {
  constexpr std::array<std::string_view, 17> kLong = {";;&", "<<<", "<<-", "&>>", "&&", "||",
                                                      ";;",  ";&",  "|&",  "&>",  "<<", "<&",
                                                      ">&",  ">>",  ">|",  "<>",  "(("};
  const std::string_view rest = text_.substr(at_, end_ - at_);
  std::size_t size = 1;
  for (const std::string_view candidate : kLong) {
    if (rest.starts_with(candidate)) {
      size = candidate.size();
      break;
    }
  }
  ShellToken token{.kind = ShellToken::Kind::kOperator,
                   .begin = at_,
                   .end = at_ + size,
                   .raw = text_.substr(at_, size)};
  at_ += size;
  return token;
}

ShellToken ShellLexer::ReadWord() {
  ShellToken token{.kind = ShellToken::Kind::kWord, .begin = at_, .end = at_, .raw = {}};
  Building word;
  ReadWordInto(&word);
  const std::string_view raw = text_.substr(token.begin, at_ - token.begin);
  if (Peek() == '(' && AssignmentPrefix(raw) == raw.size() && !raw.empty()) {
    ++at_;
    ReadArray(&token);
  } else {
    word.EndWord();
    token.words = std::move(word.words);
    token.quoted = word.quoted;
  }
  token.end = at_;
  token.raw = text_.substr(token.begin, at_ - token.begin);
  return token;
}

void ShellLexer::ReadArray(ShellToken* token) {
  token->array = true;
  while (!AtEnd() && Peek() != ')') {
    SkipBlanks();
    if (AtEnd() || Peek() == ')') break;
    if (EndsWord(Peek())) {
      ++at_;  // a newline; anything else is no element
      continue;
    }
    Building word;
    ReadWordInto(&word);
    word.EndWord();
    std::ranges::move(word.words, std::back_inserter(token->words));
  }
  if (!AtEnd()) ++at_;
}

void ShellLexer::ReadWordInto(Building* word) {
  while (!AtEnd()) {
    const char c = Peek();
    const std::size_t begin = at_;
    if ((c == '<' || c == '>') && Peek(1) == '(' && !word->started) {
      at_ += 2;
      SkipParentheses();
      Keep(word, begin);
    } else if (EndsWord(c)) {
      return;
    } else if (c == '\\') {
      at_ += Peek(1) == '\r' && Peek(2) == '\n' ? 3 : 2;
      if (at_ > end_) at_ = end_;
      if (text_[at_ - 1] != '\n') word->Add(text_.substr(at_ - 1, 1));
      word->quoted = word->quoted || text_[at_ - 1] != '\n';
    } else if (c == '\'') {
      ReadSingleQuoted(word);
    } else if (c == '"') {
      ReadDoubleQuoted(word);
    } else if (c == '$') {
      ReadExpansion(word, /*quoted=*/false);
    } else if (c == '`') {
      SkipBackquotes();
      Keep(word, begin);
    } else if (c == '{' && Peek(1) == '{') {
      constexpr std::size_t kLongestTemplate = 256;
      std::string_view line = text_.substr(at_, std::min(end_ - at_, kLongestTemplate));
      line = line.substr(0, line.find('\n'));
      const std::size_t close = line.find("}}");
      at_ += close == std::string_view::npos ? 2 : close + 2;
      Keep(word, begin);
    } else {
      ++at_;
      word->Add(text_.substr(begin, 1));
      const bool alternative = c == ',' || (c == '.' && Peek() == '.');
      word->open_brace = word->open_brace || c == '{';
      word->alternatives = word->alternatives || (word->open_brace && alternative);
      const bool glob = c == '*' || c == '?';
      if (glob || (c == '}' && word->alternatives)) word->current.resolved = false;
    }
  }
}

void ShellLexer::Keep(Building* word, std::size_t begin) {
  word->Add(text_.substr(begin, at_ - begin));
  word->current.resolved = false;
}

void ShellLexer::ReadSingleQuoted(Building* word) {
  const std::size_t begin = at_ + 1;
  const std::size_t close = std::min(text_.find('\'', begin), end_);
  word->quoted = true;
  word->Add(text_.substr(begin, close - begin));
  if (close == end_) word->current.resolved = false;
  at_ = std::min(close + 1, end_);
}

void ShellLexer::ReadAnsiQuoted(Building* word) {
  at_ += 2;
  word->quoted = true;
  word->Add("");
  while (!AtEnd() && Peek() != '\'') {
    if (Peek() != '\\') {
      word->Add(text_.substr(at_++, 1));
      continue;
    }
    constexpr std::string_view kFrom = "nt\\'\"";
    constexpr std::string_view kTo = "\n\t\\'\"";
    const std::size_t known = kFrom.find(Peek(1));
    if (known == std::string_view::npos) word->current.resolved = false;
    word->Add(known == std::string_view::npos ? text_.substr(at_, 2) : kTo.substr(known, 1));
    at_ = std::min(at_ + 2, end_);
  }
  if (!AtEnd()) ++at_;
}

void ShellLexer::ReadDoubleQuoted(Building* word) {
  ++at_;
  word->quoted = true;
  word->Add("");
  while (!AtEnd() && Peek() != '"') {
    const std::size_t begin = at_;
    if (Peek() == '\\' && at_ + 1 < end_) {
      const char next = Peek(1);
      at_ += 2;
      if (next == '\n') continue;
      const bool escapes = next == '$' || next == '`' || next == '"' || next == '\\';
      word->Add(text_.substr(escapes ? begin + 1 : begin, escapes ? 1 : 2));
    } else if (Peek() == '$') {
      ReadExpansion(word, /*quoted=*/true);
    } else if (Peek() == '`') {
      SkipBackquotes();
      Keep(word, begin);
    } else {
      while (!AtEnd() && !std::string_view("\\$`\"").contains(Peek())) ++at_;
      if (at_ == begin) ++at_;  // a backslash at the very end
      word->Add(text_.substr(begin, at_ - begin));
    }
  }
  if (AtEnd()) word->current.resolved = false;
  at_ = std::min(at_ + 1, end_);
}

void ShellLexer::ReadExpansion(Building* word, bool quoted) {
  const std::size_t begin = at_;
  const char next = Peek(1);
  if (next == '(') {
    at_ += 2;
    if (Peek() == '(') {
      ++at_;
      SkipArithmetic();
    } else {
      SkipParentheses();
    }
    Keep(word, begin);
  } else if (next == '{') {
    ReadBraceExpansion(word, quoted);
  } else if (next == '\'' && !quoted) {
    ReadAnsiQuoted(word);
  } else if (next == '"' && !quoted) {
    ++at_;
    ReadDoubleQuoted(word);
  } else if (IsNameStart(next)) {
    at_ += 2;
    while (IsNameChar(Peek())) ++at_;
    const std::string_view written = text_.substr(begin, at_ - begin);
    Insert(word, written.substr(1), written, quoted);
  } else if (base::IsDigit(next) || (next != '\0' && std::string_view("@*#?$!-").contains(next))) {
    at_ += 2;
    const std::string_view written = text_.substr(begin, 2);
    Insert(word, written.substr(1), written, quoted);
  } else {
    ++at_;
    word->Add("$");
  }
}

// ${name}, ${name[@]}, ${name:-default}; what else there is stays as written.
void ShellLexer::ReadBraceExpansion(Building* word, bool quoted) {
  const std::size_t begin = at_;
  at_ += 2;
  const std::size_t name_begin = at_;
  while (IsNameChar(Peek())) ++at_;
  if (at_ == name_begin && (Peek() == '@' || Peek() == '*')) ++at_;
  const std::string_view name = text_.substr(name_begin, at_ - name_begin);
  const bool whole_array = text_.substr(at_, 3) == "[@]" || text_.substr(at_, 3) == "[*]";
  if (whole_array) at_ += 3;
  const std::size_t operation_begin = at_;
  int open = 1;
  while (!AtEnd() && open > 0) {
    const char c = Peek();
    if (c == '\\') ++at_;
    if (c == '{') ++open;
    if (c == '}') --open;
    if (c == '\n' && open == 1 && operation_begin == at_) break;  // "${x" and no end
    ++at_;
  }
  at_ = std::min(at_, end_);
  const std::size_t operation_end = open == 0 ? at_ - 1 : at_;
  const std::string_view operation =
      text_.substr(operation_begin, operation_end - std::min(operation_begin, operation_end));
  const std::string_view written = text_.substr(begin, at_ - begin);
  if (name.empty() || open != 0) {
    Keep(word, begin);
    return;
  }
  if (operation.empty() || operation.starts_with(":?") || operation.starts_with("?")) {
    Insert(word, name, written, quoted);
    return;
  }
  const std::size_t mark = operation.starts_with(":-") || operation.starts_with(":=") ? 2
                           : operation.starts_with("-") || operation.starts_with("=") ? 1
                                                                                      : 0;
  if (mark == 0) {
    Keep(word, begin);
    return;
  }
  const ShellValue* value = lookup_(name);
  const bool empty = value != nullptr && value->words.size() == 1 && value->words[0].resolved &&
                     value->words[0].text.empty();
  if (value != nullptr && !(empty && mark == 2)) {
    Insert(word, name, written, quoted);
    return;
  }
  if (IsGivenByEnvironment(name) || depth_ >= kMaxDepth) {
    Keep(word, begin);
    return;
  }
  const std::size_t resume = std::exchange(at_, operation_begin + mark);
  const std::size_t outer_end = std::exchange(end_, operation_end);
  ++depth_;
  while (!AtEnd()) {  // the default is one more word, whose blanks count
    ReadWordInto(word);
    if (AtEnd()) break;
    if (!quoted && IsBlank(Peek())) {
      word->EndWord();
    } else {
      word->Add(text_.substr(at_, 1));
    }
    ++at_;
  }
  --depth_;
  at_ = resume;
  end_ = outer_end;
}

void ShellLexer::Insert(Building* word, std::string_view name, std::string_view written,
                        bool quoted) {
  const ShellValue* value = *expanded_ < kMaxExpanded ? lookup_(name) : nullptr;
  if (value == nullptr) {
    word->Add(written);
    word->current.resolved = false;
    return;
  }
  for (std::size_t i = 0; i < value->words.size() && *expanded_ < kMaxExpanded; ++i) {
    const Word& piece = value->words[i];
    *expanded_ += piece.text.size() + 16;
    if (i > 0) word->EndWord();
    if (quoted || !piece.resolved) {
      word->Add(piece.text);
      word->current.resolved = word->current.resolved && piece.resolved;
      continue;
    }
    if (!piece.text.empty() && base::IsSpace(piece.text.front())) word->EndWord();
    const std::vector<std::string_view> fields = base::SplitSpaces(piece.text);
    for (std::size_t field = 0; field < fields.size(); ++field) {
      if (field > 0) word->EndWord();
      word->Add(fields[field]);
      if (fields[field].contains('*')) word->current.resolved = false;
    }
    if (!fields.empty() && base::IsSpace(piece.text.back())) word->EndWord();
  }
}

void ShellLexer::SkipParentheses() {
  int open = 1;
  while (!AtEnd() && open > 0) {
    const char c = text_[at_++];
    if (c == '\\') {
      at_ = std::min(at_ + 1, end_);
    } else if (c == '\'') {
      at_ = std::min(std::min(text_.find('\'', at_), end_ - 1) + 1, end_);
    } else if (c == '"') {
      while (!AtEnd() && Peek() != '"') at_ += Peek() == '\\' ? 2 : 1;
      at_ = std::min(at_ + 1, end_);
    } else if (c == '(') {
      ++open;
    } else if (c == ')') {
      --open;
    }
  }
}

void ShellLexer::SkipArithmetic() {
  int open = 2;
  while (!AtEnd() && open > 0) {
    const char c = text_[at_++];
    if (c == '(') ++open;
    if (c == ')') --open;
  }
}

void ShellLexer::SkipBackquotes() {
  ++at_;
  while (!AtEnd() && Peek() != '`') at_ += Peek() == '\\' ? 2 : 1;
  at_ = std::min(at_ + 1, end_);
}

void ShellLexer::ReadDocumentDelimiter(bool strip_tabs) {
  while (IsBlank(Peek())) ++at_;
  Document document{.delimiter = {}, .strip_tabs = strip_tabs};
  char quote = '\0';
  while (!AtEnd() && (quote != '\0' || !EndsWord(Peek()))) {
    const char c = Peek();
    if (c == '\n') break;
    ++at_;
    if (quote == c) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote == '\0' && c == '\\') {
      if (!AtEnd() && Peek() != '\n') document.delimiter += text_[at_++];
    } else {
      document.delimiter += c;
    }
  }
  documents_.push_back(std::move(document));
}

}  // namespace expanse::workload::source
