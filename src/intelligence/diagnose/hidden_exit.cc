#include "intelligence/diagnose/hidden_exit.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "workload/source/shell_lexer.h"
#include "workload/submission.h"

namespace expanse::intelligence::diagnose {
namespace {

using workload::source::AssignmentPrefix;
using workload::source::ShellLexer;
using workload::source::ShellToken;

constexpr std::size_t kMaxScript = std::size_t{1} << 18;

// Commands whose failure is nobody's loss, or that only steer the script.
constexpr auto kHousekeeping = std::to_array<std::string_view>(
    {":",          "true",    "false",      "echo",     "printf",   "cd",       "pushd",
     "popd",       "set",     "shopt",      "test",     "[",        "[[",       "exit",
     "wait",       "ulimit",  "date",       "sleep",    "hostname", "kill",     "pkill",
     "rm",         "rmdir",   "mkdir",      "cp",       "mv",       "ln",       "touch",
     "chmod",      "chown",   "ls",         "cat",      "grep",     "egrep",    "head",
     "tail",       "sort",    "wc",         "cut",      "tr",       "sed",      "awk",
     "find",       "xargs",   "which",      "type",     "tee",      "module",   "ml",
     "source",     ".",       "conda",      "mamba",    "spack",    "env",      "export",
     "unset",      "declare", "local",      "trap",     "return",   "pwd",      "df",
     "du",         "free",    "nproc",      "lscpu",    "uname",    "id",       "whoami",
     "sync",       "umount",  "fusermount", "scontrol", "squeue",   "sacct",    "scancel",
     "seff",       "sstat",   "nvidia-smi", "rocm-smi", "ps",       "top",      "lsof",
     "deactivate", "mktemp",  "for",        "select",   "case",     "function", "read",
     "eval",       "let",     "sinfo",      "rocminfo", "stat"});

// Those of them that end well whatever happened before.
constexpr auto kEndsWell =
    std::to_array<std::string_view>({":", "true", "echo", "printf", "date", "hostname", "sleep",
                                     "sync", "pwd", "uname", "deactivate"});

bool Contains(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::string_view FileName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// One simple command of the script.
struct Step {
  std::string_view name;    // without its folder
  std::string_view second;  // word
  std::size_t begin = 0;
  std::size_t words = 0;
  bool IsWork() const { return words > 0 && !Contains(kHousekeeping, name); }
  bool EndsWell() const {
    if (Contains(kEndsWell, name)) return true;
    if (name == "exit") return second == "0";
    return name == "wait" && words == 1;
  }
};

class Scanner {
 public:
  explicit Scanner(std::string_view script)
      : script_(script),
        lexer_(script, 0, script.size(), [](std::string_view) { return nullptr; }, &expanded_) {}

  std::optional<HiddenExit> Find() {
    errexit_ = ShebangSetsErrexit();
    for (ShellToken token = lexer_.Next(); token.kind != ShellToken::Kind::kEnd;
         token = lexer_.Next()) {
      if (token.kind == ShellToken::Kind::kWord) {
        Word(token);
      } else {
        Operator(token.kind == ShellToken::Kind::kNewline ? "\n" : token.raw);
      }
    }
    Operator("\n");
    if (or_true_) return At(Hiding::kOrTrue, *or_true_);
    if (set_plus_e_ && work_after_plus_e_) return At(Hiding::kSetPlusE, *set_plus_e_);
    if (pipe_) return At(Hiding::kPipe, *pipe_);
    if (hidden_work_ && last_is_simple_ && last_.EndsWell())
      return At(Hiding::kLastCommand, last_.begin);
    return std::nullopt;
  }

 private:
  bool ShebangSetsErrexit() const {
    const std::string_view line = script_.substr(0, script_.find('\n'));
    const std::size_t option = line.find(" -");
    if (option == std::string_view::npos) return false;
    const std::string_view rest = line.substr(option + 2);
    const std::string_view letters = rest.substr(0, rest.find(' '));
    return !letters.starts_with('-') && letters.find('e') != std::string_view::npos;
  }

  HiddenExit At(Hiding how, std::size_t begin) const {
    return {.how = how,
            .line = workload::PlaceOf(script_, begin, begin).line,
            .text = std::string(workload::LineAt(script_, begin))};
  }

  void Word(const ShellToken& token) {
    if (redirect_) {
      redirect_ = false;
      return;
    }
    if (at_command_ && !token.quoted && Keyword(token.raw)) return;
    if (step_.words == 0 && token.is("[[")) SkipTest();
    if (step_.words == 0) {
      if (AssignmentPrefix(token.raw) > 0) return;
      if (token.raw == "time" || token.raw == "exec" || token.raw == "nohup") return;
      step_.begin = token.begin;
      step_.name = FileName(token.raw);
    }
    if (step_.words == 1) step_.second = token.raw;
    if (step_.name == "set") Set(token);
    ++step_.words;
    at_command_ = false;
  }

  void SkipTest() {
    for (ShellToken next = lexer_.Next(); !next.is("]]"); next = lexer_.Next())
      if (next.kind == ShellToken::Kind::kEnd) return;
  }

  // A group's status is that of what ends it: its commands are no list's part.
  void OpenGroup() {
    before_ = {};
    previous_ = {};
  }

  // Whether the word steers the script; keeps count of open blocks.
  bool Keyword(std::string_view word) {
    if (word == "if" || word == "while" || word == "until") {
      ++blocks_;
      in_condition_ = true;
    } else if (word == "elif") {
      in_condition_ = true;
    } else if (word == "then" || word == "do") {
      in_condition_ = false;
    } else if (word == "fi" || word == "done" || word == "esac" || word == "}") {
      blocks_ = std::max(0, blocks_ - 1);
      if (blocks_ == 0) last_is_simple_ = false;
    } else if (word == "{") {
      ++blocks_;
      OpenGroup();
    } else if (word == "for" || word == "case" || word == "select") {
      ++blocks_;
      return false;
    } else {
      return word == "else" || word == "!";
    }
    return true;
  }

  void Set(const ShellToken& token) {
    const std::string_view word = token.raw;
    const bool on = word.starts_with('-');
    if (!on && !word.starts_with('+') && word != "errexit" && word != "pipefail") return;
    if (word == "errexit" ||
        (word.size() > 1 && word != "--" && word.find('e') < word.size() && (on || word[0] == '+')))
      SetErrexit(word == "errexit" ? turning_on_ : on);
    if (word == "pipefail") pipefail_ = turning_on_;
    if (on || word.starts_with('+')) turning_on_ = on;
  }
  void SetErrexit(bool on) {
    if (errexit_ && !on) {
      set_plus_e_ = step_.begin;
      work_after_plus_e_ = false;
    }
    if (on) set_plus_e_.reset();
    errexit_ = on;
  }

  void Operator(std::string_view op) {
    if (op.starts_with('<') || op.starts_with('>') || op.starts_with("&>")) {
      Redirect(op);
      return;
    }
    redirect_ = false;
    if (op == "((") {
      lexer_.SkipArithmetic();
      return;
    }
    if (op == "(") {
      OpenParenthesis();
      return;
    }
    if (op == ")" && subshells_ == 0) {  // of a case's pattern, or of "name ( )"
      step_ = {};
      at_command_ = true;
      return;
    }
    if (op == ")") --subshells_;
    EndStep(op);
    if (op == ")" && subshells_ == 0 && blocks_ == 0) last_is_simple_ = false;
    at_command_ = true;
  }

  void OpenParenthesis() {
    if (step_.words == 1) {  // name ( ): a function's definition
      step_ = {};
      if (lexer_.PeekPastBlanks() == ')') lexer_.Next();
    } else {
      ++subshells_;
      OpenGroup();
    }
    at_command_ = true;
  }

  void Redirect(std::string_view op) {
    if (op == "<<" || op == "<<-") {
      lexer_.ReadDocumentDelimiter(op == "<<-");
    } else {
      redirect_ = true;
    }
  }

  void EndStep(std::string_view op) {
    if (step_.words > 0 && !in_condition_) Judge(op);
    const bool ends_list = op == "\n" || op == ";" || op == "&" || op == ")" || op == ";;";
    // Behind "||" and "|" a list goes on in the next line.
    if (step_.words == 0 && op == "\n" && (before_ == "||" || before_ == "&&" || before_ == "|"))
      return;
    before_ = ends_list ? std::string_view() : op;
    if (ends_list) previous_ = {};
    if (!ends_list && step_.words > 0) previous_ = step_;
    step_ = {};
  }

  void Judge(std::string_view op) {
    if (before_ == "||" && previous_.IsWork() && step_.EndsWell()) or_true_ = previous_.begin;
    if ((op == "|" || op == "|&") && step_.IsWork() && !pipefail_) pipe_ = step_.begin;
    if (step_.IsWork() && !errexit_) {
      hidden_work_ = true;
      if (set_plus_e_) work_after_plus_e_ = true;
    }
    if (blocks_ > 0 || subshells_ > 0) return;
    last_ = step_;
    last_is_simple_ = before_.empty();
  }

  std::string_view script_;
  std::size_t expanded_ = 0;
  ShellLexer lexer_;
  Step step_;                // under way
  Step previous_;            // of the same list
  std::string_view before_;  // the operator in front of the step; empty: it begins a list
  Step last_;
  bool last_is_simple_ = false;
  bool at_command_ = true;
  bool redirect_ = false;
  bool in_condition_ = false;
  bool errexit_ = false;
  bool pipefail_ = false;
  bool turning_on_ = true;
  int blocks_ = 0;
  int subshells_ = 0;
  bool hidden_work_ = false;
  bool work_after_plus_e_ = false;
  std::optional<std::size_t> or_true_;
  std::optional<std::size_t> set_plus_e_;
  std::optional<std::size_t> pipe_;
};

bool IsShellScript(std::string_view script) {
  if (!script.starts_with("#!")) return false;
  std::string_view line = base::Trim(script.substr(2, script.find('\n') - 2));
  std::string_view program = FileName(line.substr(0, line.find(' ')));
  if (program == "env") {
    line.remove_prefix(std::min(line.find(' '), line.size()));
    line = base::Trim(line);
    if (line.starts_with("-S ")) line = base::Trim(line.substr(3));
    program = FileName(line.substr(0, line.find(' ')));
  }
  constexpr auto kShells =
      std::to_array<std::string_view>({"sh", "bash", "dash", "ksh", "zsh", "ash"});
  return Contains(kShells, program);
}

}  // namespace

std::string_view Name(Hiding hiding) {
  switch (hiding) {
    case Hiding::kOrTrue:
      return "or_true";
    case Hiding::kSetPlusE:
      return "set_plus_e";
    case Hiding::kPipe:
      return "pipe";
    case Hiding::kLastCommand:
      return "last_command";
  }
  return "";
}

std::optional<HiddenExit> FindHiddenExit(std::string_view script) {
  if (script.size() > kMaxScript || !IsShellScript(script)) return std::nullopt;
  return Scanner(script).Find();
}

}  // namespace expanse::intelligence::diagnose
