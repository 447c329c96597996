#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <vector>

#include "base/text.h"
#include "intelligence/history/normalise.h"

namespace expanse::intelligence::history {
namespace {

struct Token {
  std::string text;  // as written
  bool is_operator = false;
  bool space_before = false;
  bool dropped = false;
};

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsOperator(char c) { return c == ';' || c == '&' || c == '|' || c == '(' || c == ')'; }
bool IsRedirect(char c) { return c == '<' || c == '>'; }

struct HereDocument {
  std::string delimiter;
  bool tabs = false;  // "<<-": leading tabs do not count
};

// A directive that is no request: it decides what the job sees.
bool SetsEnvironment(std::string_view comment) {
  return comment.starts_with("#SBATCH") && comment.find("--export") != std::string_view::npos;
}

// Splits shell text into the tokens of one logical line after the other.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  // The tokens up to the end of the line, which is consumed.
  std::vector<Token> Line() {
    std::vector<Token> tokens;
    bool space = false;
    while (!AtEnd()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++at_;
        break;
      }
      if (IsBlank(c) || Continues()) {
        at_ += IsBlank(c) ? 1 : 2;
        space = true;
        continue;
      }
      if (c == '#' && (space || tokens.empty() || tokens.back().is_operator)) {
        Comment(&tokens);
        continue;
      }
      tokens.push_back(IsOperator(c) ? Token{.text = std::string(1, c), .is_operator = true}
                                     : WordOrRedirect());
      if (tokens.back().is_operator && IsOperator(c)) ++at_;
      tokens.back().space_before = space && tokens.size() > 1;
      space = false;
    }
    NoteHereDocuments(tokens);
    return tokens;
  }
  // The lines of here-documents that the last line began, as they are.
  std::string_view HereDocuments() {
    const std::size_t begin = at_;
    for (; !pending_.empty() && !AtEnd(); pending_.pop_front()) {
      while (!AtEnd() && !EndsHere(NextLine(), pending_.front())) {
      }
    }
    pending_.clear();
    return text_.substr(begin, at_ - begin);
  }

 private:
  bool Continues() const {
    return text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
  }
  std::string_view NextLine() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = std::min(end + 1, text_.size());
    return line;
  }
  static bool EndsHere(std::string_view line, const HereDocument& document) {
    if (document.tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
    return line == document.delimiter;
  }
  void Comment(std::vector<Token>* tokens) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view comment = text_.substr(at_, end - at_);
    const bool interpreter = at_ == 0 && comment.starts_with("#!");
    if (tokens->empty() && (interpreter || SetsEnvironment(comment)))
      tokens->push_back({.text = std::string(comment)});
    at_ = end;
  }
  // One redirection operator with the digits before it, or one word.
  Token WordOrRedirect() {
    std::size_t end = at_;
    while (end < text_.size() && base::IsDigit(text_[end])) ++end;
    if (end < text_.size() && IsRedirect(text_[end])) {
      while (end < text_.size() && (IsRedirect(text_[end]) || text_[end] == '|')) ++end;
      if (end < text_.size() && text_[end] == '-' && text_[end - 1] == '<') ++end;
      return {.text = Take(end), .is_operator = true};
    }
    return {.text = Take(WordEnd())};
  }
  std::size_t WordEnd() const {
    std::size_t at = at_;
    while (at < text_.size()) {
      const char c = text_[at];
      if (c == '\n' || IsBlank(c) || IsOperator(c) || IsRedirect(c)) break;
      if (c == '\\') {
        if (at + 1 < text_.size() && text_[at + 1] == '\n') break;
        at = std::min(at + 2, text_.size());
      } else if (c == '\'' || c == '"') {
        at = QuoteEnd(at);
      } else {
        ++at;
      }
    }
    return std::max(at, at_ + 1);
  }
  std::size_t QuoteEnd(std::size_t at) const {
    const char quote = text_[at++];
    while (at < text_.size() && text_[at] != quote) {
      at = std::min(at + (quote == '"' && text_[at] == '\\' ? 2 : 1), text_.size());
    }
    return std::min(at + 1, text_.size());
  }
  std::string Take(std::size_t end) {
    std::string taken(text_.substr(at_, end - at_));
    at_ = end;
    return taken;
  }
  void NoteHereDocuments(const std::vector<Token>& tokens) {
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const std::string_view op = tokens[i].text;
      if (!tokens[i].is_operator || !(op.ends_with("<<") || op.ends_with("<<-")) ||
          op.find("<<<") != std::string_view::npos || tokens[i + 1].is_operator)
        continue;
      HereDocument document{.delimiter = {}, .tabs = op.ends_with('-')};
      for (const char c : tokens[i + 1].text) {
        if (c != '\'' && c != '"' && c != '\\') document.delimiter += c;
      }
      pending_.push_back(std::move(document));
    }
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::deque<HereDocument> pending_;
};

// Comparisons, where ">" does not redirect.
bool Compares(const std::vector<Token>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text.starts_with("[[")) return true;
    if (i > 0 && tokens[i].text == "(" && tokens[i - 1].text == "(") return true;
  }
  return false;
}

void DropRedirections(std::vector<Token>* tokens) {
  if (Compares(*tokens)) return;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    Token& op = (*tokens)[i];
    if (!op.is_operator || op.text.find('>') == std::string::npos ||
        op.text.find('<') != std::string::npos)
      continue;
    if (i + 1 == tokens->size() || (*tokens)[i + 1].is_operator) continue;  // ">&1", ">(…)"
    op.dropped = true;
    (*tokens)[i + 1].dropped = true;
    // "&>" is an operator of one character before the redirection.
    if (i > 0 && (*tokens)[i - 1].text == "&" && !op.space_before) (*tokens)[i - 1].dropped = true;
    ++i;
  }
}

// Words of one command, between operators.
template <typename F>
void ForEachCommand(std::vector<Token>* tokens, F&& on_command) {
  std::vector<Token*> words;
  for (Token& token : *tokens) {
    if (token.dropped) continue;
    if (!token.is_operator) {
      words.push_back(&token);
    } else if (!token.text.empty() && IsOperator(token.text.front())) {
      on_command(words);
      words.clear();
    }
  }
  on_command(words);
}

enum class Takes : std::uint8_t { kNothing, kValue };
struct LaunchOption {
  std::string_view name;
  bool is_resource;
  Takes takes;
};
// Of srun, sbatch and salloc: those that ask for resources, and others with a value of their own.
constexpr auto kLaunchOptions = std::to_array<LaunchOption>({
    {"-n", true, Takes::kValue},
    {"-c", true, Takes::kValue},
    {"-N", true, Takes::kValue},
    {"-t", true, Takes::kValue},
    {"-G", true, Takes::kValue},
    {"--ntasks", true, Takes::kValue},
    {"--ntasks-per-node", true, Takes::kValue},
    {"--ntasks-per-gpu", true, Takes::kValue},
    {"--cpus-per-task", true, Takes::kValue},
    {"--cpus-per-gpu", true, Takes::kValue},
    {"--nodes", true, Takes::kValue},
    {"--mem", true, Takes::kValue},
    {"--mem-per-cpu", true, Takes::kValue},
    {"--mem-per-gpu", true, Takes::kValue},
    {"--time", true, Takes::kValue},
    {"--gres", true, Takes::kValue},
    {"--gpus", true, Takes::kValue},
    {"--gpus-per-node", true, Takes::kValue},
    {"--gpus-per-task", true, Takes::kValue},
    {"--exclusive", true, Takes::kNothing},
    {"-o", true, Takes::kValue},
    {"-e", true, Takes::kValue},
    {"--output", true, Takes::kValue},
    {"--error", true, Takes::kValue},
    {"-p", false, Takes::kValue},
    {"-A", false, Takes::kValue},
    {"-J", false, Takes::kValue},
    {"-w", false, Takes::kValue},
    {"-x", false, Takes::kValue},
    {"-D", false, Takes::kValue},
    {"-C", false, Takes::kValue},
    {"-d", false, Takes::kValue},
    {"-m", false, Takes::kValue},
    {"--partition", false, Takes::kValue},
    {"--account", false, Takes::kValue},
    {"--job-name", false, Takes::kValue},
    {"--mpi", false, Takes::kValue},
    {"--export", false, Takes::kValue},
});

bool IsLauncher(std::string_view word) {
  const std::string_view name = word.substr(word.rfind('/') + 1);
  return name == "srun" || name == "sbatch" || name == "salloc";
}

// Of `word` with or without its value ("-n4", "--mem=4G"); `inline_value` says which.
const LaunchOption* FindLaunchOption(std::string_view word, bool* inline_value) {
  const std::size_t equals = word.find('=');
  *inline_value = word.starts_with("--") ? equals != std::string_view::npos : word.size() > 2;
  const std::string_view name = word.starts_with("--") ? word.substr(0, equals) : word.substr(0, 2);
  const auto at = std::ranges::find(kLaunchOptions, name, &LaunchOption::name);
  return at == kLaunchOptions.end() ? nullptr : &*at;
}

void DropLaunchResources(std::span<Token* const> words) {
  std::size_t i = 0;
  while (i < words.size() && !IsLauncher(words[i]->text)) ++i;
  for (++i; i < words.size() && words[i]->text.starts_with('-'); ++i) {
    bool inline_value = false;
    const LaunchOption* option = FindLaunchOption(words[i]->text, &inline_value);
    if (option == nullptr) continue;
    const bool next = option->takes == Takes::kValue && !inline_value && i + 1 < words.size();
    if (option->is_resource) {
      words[i]->dropped = true;
      if (next) words[i + 1]->dropped = true;
    }
    if (next) ++i;
  }
}

void DropOutputNames(std::span<Token* const> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i]->dropped) continue;
    const std::string_view word = words[i]->text;
    const std::size_t equals = word.find('=');
    if (i > 0 && IsOutputOption(word.substr(0, equals))) {
      words[i]->dropped = true;
      const bool next = equals == std::string_view::npos && i + 1 < words.size() &&
                        !words[i + 1]->dropped && !words[i + 1]->text.starts_with('-');
      if (next) words[++i]->dropped = true;
    }
    if (i == 0 && word == "tee") {
      for (std::size_t k = 1; k < words.size(); ++k) {
        if (!words[k]->text.starts_with('-')) words[k]->dropped = true;
      }
      return;
    }
  }
}

void Emit(const std::vector<Token>& tokens, std::string* out) {
  bool space = false;
  bool first = true;
  for (const Token& token : tokens) {
    space = space || token.space_before;
    if (token.dropped) continue;
    if (space && !first && token.text != ";") *out += ' ';
    *out += token.text;
    first = false;
    space = false;
  }
  if (!first) *out += '\n';
}

}  // namespace

bool IsOutputOption(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "out",        "output",    "outdir",       "outfile",   "outputdir",    "outputfile",
      "outputpath", "log",       "logs",         "logdir",    "logfile",      "logpath",
      "savedir",    "savepath",  "saveto",       "resultdir", "results",      "outpath",
      "resultsdir", "outprefix", "outputprefix", "runname",   "checkpointdir"};
  if (!name.starts_with("--")) return false;
  std::string bare;
  for (const char c : name.substr(2)) {
    if (c != '-' && c != '_') bare += c;
  }
  return std::ranges::find(kNames, bare) != std::end(kNames);
}

std::string NormaliseShell(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Lexer lexer(text);
  while (!lexer.AtEnd()) {
    std::vector<Token> tokens = lexer.Line();
    const std::string_view documents = lexer.HereDocuments();
    DropRedirections(&tokens);
    ForEachCommand(&tokens, [](std::span<Token* const> words) {
      DropLaunchResources(words);
      DropOutputNames(words);
    });
    Emit(tokens, &out);
    out += documents;
  }
  return out;
}

}  // namespace expanse::intelligence::history
