#include "workload/source/shell_reader.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "workload/source/launchers.h"

namespace expanse::workload::source {
namespace {

constexpr int kMaxDepth = 12;
constexpr std::size_t kMaxBlocks = 1000;
constexpr std::size_t kMaxEnvironment = 1000;
constexpr std::size_t kMaxCommands = 20'000;
constexpr std::size_t kNoCommand = static_cast<std::size_t>(-1);

constexpr auto kSteering = std::to_array<std::string_view>(
    {":",     "true",  "false",    "echo",    "printf", "cd",      "pushd",   "popd",    "pwd",
     "set",   "shopt", "test",     "[",       "[[",     "exit",    "return",  "break",   "continue",
     "shift", "trap",  "wait",     "ulimit",  "umask",  "alias",   "unalias", "hash",    "type",
     "date",  "sleep", "hostname", "whoami",  "id",     "uname",   "getopts", "let",     "enable",
     "jobs",  "kill",  "dirs",     "history", "bind",   "builtin", "limit",   "unlimit", "end"});

bool Contains(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

ShellReader::ShellReader(std::string_view text, const ShellOptions& options, const Loops* loops)
    : text_(text),
      options_(options),
      loops_(loops),
      lines_(text),
      most_bytes_(text.size() * 20 + 10'000) {
  for (const auto& [name, value] : options.variables) {
    variables_.Set(name, {.words = {Word{.text = value}}});
  }
  for (const std::string& argument : options.arguments) {
    script_arguments_.push_back({.text = argument});
  }
  if (!script_arguments_.empty()) arguments_ = &script_arguments_;
}

void ShellReader::Read() {
  ReadRange({.begin = std::min(options_.begin, text_.size()), .end = text_.size()});
}

const ShellValue* ShellReader::Lookup(std::string_view name) {
  const bool positional = !name.empty() && base::IsDigit(name[0]);
  if (positional || name == "@" || name == "*" || name == "#") {
    if (arguments_ == nullptr || name == "0") return nullptr;
    found_value_.words.clear();
    if (name == "#") {
      found_value_.words.push_back({.text = std::to_string(arguments_->size() - shifted_)});
    } else if (!positional) {
      found_value_.words.assign(arguments_->begin() + static_cast<std::ptrdiff_t>(shifted_),
                                arguments_->end());
    } else {
      const auto index = base::ParseInt<std::size_t>(name);
      if (!index || *index == 0 || *index > arguments_->size() - shifted_) return nullptr;
      found_value_.words.push_back((*arguments_)[shifted_ + *index - 1]);
    }
    return &found_value_;
  }
  if (const ShellValue* value = variables_.Find(name)) return value;
  if (parent_ == nullptr || variables_.WasChanged(name)) return nullptr;
  const auto given = parent_->script_.environment.find(std::string(name));
  if (given == parent_->script_.environment.end()) return nullptr;
  found_value_.words = {Word{.text = given->second}};
  return &found_value_;
}

// Reads a range with block and command state of its own, so that functions can be read where they
// are called.
void ShellReader::ReadRange(const Range& range) {
  auto blocks = std::exchange(blocks_, {});
  auto simple = std::exchange(simple_, {});
  auto documents = std::exchange(documents_, {});
  const auto pending = std::exchange(pending_documents_, 0);
  const auto state =
      std::tuple(at_command_, conditional_, last_was_test_, skipping_, arguments_, shifted_);
  at_command_ = true;
  conditional_ = last_was_test_ = false;
  skipping_ = 0;
  if (range.arguments != nullptr) {
    arguments_ = range.arguments;
    shifted_ = 0;
  }

  ShellLexer lexer(
      text_, range.begin, range.end, [this](std::string_view name) { return Lookup(name); },
      expanded_);
  std::size_t position = range.begin;
  while (*bytes_ < most_bytes_ && script_.commands.size() < kMaxCommands) {
    const ShellToken token = lexer.Next();
    *bytes_ += lexer.position() - std::exchange(position, lexer.position()) + 1;
    if (token.kind == ShellToken::Kind::kEnd) break;
    if (token.kind == ShellToken::Kind::kNewline) {
      Newline(token);
    } else if (token.kind == ShellToken::Kind::kOperator) {
      Operator(&lexer, token);
    } else {
      WordToken(&lexer, token);
    }
  }
  EndCommand();
  while (!blocks_.empty()) CloseTop(range.end);

  blocks_ = std::move(blocks);
  simple_ = std::move(simple);
  documents_ = std::move(documents);
  pending_documents_ = pending;
  std::tie(at_command_, conditional_, last_was_test_, skipping_, arguments_, shifted_) = state;
}

bool ShellReader::InPattern() const { return !blocks_.empty() && blocks_.back().in_pattern; }

void ShellReader::Newline(const ShellToken& token) {
  EndCommand();
  conditional_ = last_was_test_ = false;
  for (std::size_t i = 0; i < std::min(documents_.size(), token.documents.size()); ++i) {
    if (documents_[i] >= script_.commands.size()) continue;
    Command& command = script_.commands[documents_[i]];
    command.input = token.documents[i];
    const bool is_script = IsShell(command.words[0].text) &&
                           (command.words.size() == 1 || command.words[1].text == "-s");
    if (is_script && depth_ < kMaxDepth) ReadEmbedded(Command(command), token.documents[i], {});
  }
  documents_.clear();
}

void ShellReader::Operator(ShellLexer* lexer, const ShellToken& token) {
  const std::string_view op = token.raw;
  if (InPattern()) {
    if (op == ")") {
      blocks_.back().in_pattern = false;
      at_command_ = true;
    }
    return;
  }
  if (op == ";;" || op == ";&" || op == ";;&") {
    EndCommand();
    if (!blocks_.empty() && blocks_.back().kind == Kind::kCase) {
      blocks_.back().in_pattern = true;
      if (skipping_ == 0) variables_.NextBranch();
    }
    conditional_ = false;
  } else if (op == "((" && at_command_ && simple_.words.empty()) {
    lexer->SkipArithmetic();
    at_command_ = false;
  } else if (op == "(" && BeginsFunction(*lexer)) {  // name ( )
    lexer->Next();
    if (simple_.words.empty()) return;  // function name ( )
    Open(Kind::kFunction, simple_.begin, simple_.words[0].text);
    simple_ = {};
  } else if (op == "(" || op == "((") {
    EndCommand();
    Open(Kind::kSubshell, token.begin);
    if (op == "((") Open(Kind::kSubshell, token.begin);
  } else if (op == ")") {
    EndCommand();
    Close({Kind::kSubshell}, token.end);
    at_command_ = false;
  } else if (op.starts_with('<') || op.starts_with('>') || op.starts_with("&>")) {
    Redirect(lexer, token);
  } else {  // ; & && || | |&
    EndCommand();
    conditional_ = op == "||" || (op == "&&" && (last_was_test_ || conditional_));
  }
}

// Whether the "(" that was read is that of "name ( )".
bool ShellReader::BeginsFunction(const ShellLexer& lexer) const {
  if (lexer.PeekPastBlanks() != ')') return false;
  if (simple_.words.size() == 1) return simple_.assignments.empty();
  return simple_.words.empty() && !blocks_.empty() && blocks_.back().kind == Kind::kFunction &&
         blocks_.back().inner == 0;
}

void ShellReader::Redirect(ShellLexer* lexer, const ShellToken& token) {
  // The digits of 2>&1 were read as a word.
  bool of_other_descriptor = false;
  if (!simple_.words.empty() && simple_.end == token.begin) {
    const std::string& last = simple_.words.back().text;
    if (last.size() == 1 && base::IsDigit(last[0])) {
      of_other_descriptor = last != "1";
      simple_.words.pop_back();
    }
  }
  if (token.raw == "<<" || token.raw == "<<-") {
    lexer->ReadDocumentDelimiter(token.raw == "<<-");
    ++pending_documents_;
    return;
  }
  const ShellToken target = lexer->Next();
  if (target.kind != ShellToken::Kind::kWord) {
    if (target.kind == ShellToken::Kind::kNewline) Newline(target);
    return;
  }
  if (target.words.size() != 1) return;
  if (token.raw == "<<<") simple_.input = target.words[0].text;
  const bool output =
      token.raw == ">" || token.raw == ">>" || token.raw == "&>" || token.raw == ">|";
  if (output && !of_other_descriptor) simple_.output = target.words[0].text;
}

void ShellReader::WordToken(ShellLexer* lexer, const ShellToken& token) {
  if (InPattern()) {
    if (token.is("esac")) Close({Kind::kCase}, token.end);
    return;
  }
  if (at_command_ && Keyword(lexer, token)) return;
  if (at_command_ && simple_.words.empty() && token.is("[[")) {
    for (ShellToken next = lexer->Next(); !next.is("]]"); next = lexer->Next()) {
      if (next.kind == ShellToken::Kind::kEnd) break;
    }
  }
  if (simple_.words.empty() && simple_.assignments.empty()) {
    simple_.begin = token.begin;
    simple_.conditional = conditional_;
  }
  simple_.end = token.end;
  if (simple_.words.empty() && AssignmentPrefix(token.raw) > 0) {
    simple_.assignments.push_back(token);
    at_command_ = false;
    return;
  }
  at_command_ = false;
  std::ranges::copy(token.words, std::back_inserter(simple_.words));
}

// Keywords where a command may begin; true when the word was one.
bool ShellReader::Keyword(ShellLexer* lexer, const ShellToken& token) {
  if (!simple_.words.empty() || token.quoted) return false;
  const std::string_view word = token.raw;
  if (word == "if") {
    Open(Kind::kIf, token.begin);
  } else if (word == "while" || word == "until") {
    Open(Kind::kLoop, token.begin);
  } else if (word == "for" || word == "select" || word == "foreach") {
    BeginLoopOverWords(lexer, token);
  } else if (word == "case") {
    lexer->Next();  // the word that decides
    lexer->Next();  // in
    Open(Kind::kCase, token.begin);
  } else if (word == "else" || word == "elif") {
    if (!blocks_.empty() && skipping_ == 0) variables_.NextBranch();
  } else if (word == "fi" || word == "endif") {
    Close({Kind::kIf}, token.end);
    at_command_ = false;
  } else if (word == "done") {
    Close({Kind::kLoop}, token.end);
    at_command_ = false;
  } else if (word == "esac") {
    Close({Kind::kCase}, token.end);
    at_command_ = false;
  } else if (word == "{") {
    Open(Kind::kBrace, token.begin);
  } else if (word == "}") {
    Close({Kind::kBrace}, token.end);
    at_command_ = false;
  } else if (word == "function") {
    const ShellToken name = lexer->Next();
    if (name.words.size() == 1) Open(Kind::kFunction, token.begin, name.words[0].text);
  } else if (word != "then" && word != "do" && word != "!") {
    return false;
  }
  return true;
}

void ShellReader::BeginLoopOverWords(ShellLexer* lexer, const ShellToken& token) {
  Open(Kind::kLoop, token.begin);
  const ShellToken name = lexer->Next();
  if (name.is("((")) {
    lexer->SkipArithmetic();
    return;
  }
  if (name.kind == ShellToken::Kind::kWord && skipping_ == 0 && IsShellName(name.raw)) {
    variables_.Forget(name.raw);
  }
  while (true) {  // in WORD…, or csh's (WORD…)
    const ShellToken next = lexer->Next();
    if (next.kind == ShellToken::Kind::kEnd || next.kind == ShellToken::Kind::kNewline ||
        next.is(";") || next.is("do")) {
      return;
    }
  }
}

void ShellReader::Open(Kind kind, std::size_t begin, std::string name) {
  at_command_ = true;
  if (blocks_.size() >= kMaxBlocks) return;
  Block block{.kind = kind, .begin = begin, .name = std::move(name)};
  block.in_pattern = kind == Kind::kCase;
  if (kind == Kind::kFunction) {
    ++skipping_;  // until the one compound command that is its body is closed
  } else if (!blocks_.empty() && blocks_.back().kind == Kind::kFunction &&
             blocks_.back().inner == 0) {
    blocks_.back().inner = begin + (kind == Kind::kBrace || kind == Kind::kSubshell ? 1 : 0);
  }
  blocks_.push_back(std::move(block));
  if (skipping_ > 0) return;
  using Scope = ShellVariables::Block;
  variables_.Open(kind == Kind::kSubshell ? Scope::kSubshell
                  : kind == Kind::kBrace  ? Scope::kPlain
                                          : Scope::kBranches);
  if (kind == Kind::kLoop && loops_ != nullptr) {
    if (const auto changed = loops_->find(begin); changed != loops_->end()) {
      for (const std::string& changed_name : changed->second) variables_.Forget(changed_name);
    }
  }
}

// Closes the innermost block of these kinds and what was left open within it; nothing where none
// is open, as in a text that is cut.
void ShellReader::Close(std::initializer_list<Kind> kinds, std::size_t end) {
  const auto found = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const Block& block) {
    return std::ranges::find(kinds, block.kind) != kinds.end();
  });
  if (found == blocks_.rend()) return;
  const auto keep = static_cast<std::size_t>(blocks_.rend() - found) - 1;
  while (blocks_.size() > keep) CloseTop(end);
  if (!blocks_.empty() && blocks_.back().kind == Kind::kFunction) CloseTop(end);
}

void ShellReader::CloseTop(std::size_t end) {
  const Block block = std::move(blocks_.back());
  blocks_.pop_back();
  if (block.kind == Kind::kFunction) {
    --skipping_;
    if (skipping_ == 0 && block.inner != 0) {
      functions_.insert_or_assign(block.name, Range{.begin = block.inner, .end = end});
    }
    return;
  }
  if (skipping_ > 0) return;
  if (block.kind == Kind::kLoop) {
    for (const std::string& name : variables_.Changed()) loops_found_[block.begin].insert(name);
  }
  variables_.Close();
}

void ShellReader::EndCommand() {
  at_command_ = true;
  Simple simple = std::exchange(simple_, {});
  const std::size_t pending = std::exchange(pending_documents_, 0);
  const std::size_t before = script_.commands.size();
  if (!simple.words.empty()) {
    constexpr std::array<std::string_view, 3> kTests = {"[", "[[", "test"};
    last_was_test_ = Contains(kTests, simple.words[0].text);
  }
  if (skipping_ == 0) {
    if (simple.words.empty()) {
      for (const ShellToken& token : simple.assignments) Assign(token, simple.conditional);
    } else {
      Emit(std::move(simple));
    }
  }
  const bool emitted = script_.commands.size() == before + 1;
  documents_.insert(documents_.end(), std::min<std::size_t>(pending, 64),
                    emitted ? before : kNoCommand);
}

void ShellReader::SetEnvironment(std::string_view name, std::string_view value) {
  if (script_.environment.size() >= kMaxEnvironment) return;
  script_.environment.insert_or_assign(std::string(name), std::string(value));
}

void ShellReader::Assign(const ShellToken& token, bool conditional) {
  const std::size_t prefix = AssignmentPrefix(token.raw);
  const bool append = token.raw[prefix - 2] == '+';
  const std::string_view name = token.raw.substr(0, prefix - (append ? 2 : 1));
  if (conditional) {
    variables_.Forget(name);
    return;
  }
  ShellValue value{.words = token.words};
  if (!token.array) {
    // The lexer read "NAME=value" as one word, or as several where the value has blanks: those of
    // an assignment do not split.
    std::string joined;
    bool resolved = true;
    for (std::size_t i = 0; i < token.words.size(); ++i) {
      if (i > 0) joined += ' ';
      joined += token.words[i].text;
      resolved = resolved && token.words[i].resolved;
    }
    value.words = {
        Word{.text = joined.substr(std::min(prefix, joined.size())), .resolved = resolved}};
  }
  const bool known = std::ranges::all_of(value.words, &Word::resolved);
  if (append) {
    variables_.Append(name, std::move(value), token.array);
  } else if (known || token.array) {
    variables_.Set(name, std::move(value));
  } else {
    variables_.Forget(name);
  }
  if (exported_.contains(name)) {
    const ShellValue* now = variables_.Find(name);
    if (now != nullptr && now->words.size() == 1 && now->words[0].resolved) {
      SetEnvironment(name, now->words[0].text);
    } else {
      script_.environment.erase(std::string(name));
    }
  }
}

// Within a branch or a loop nobody knows how often it is done.
void ShellReader::Shift(const Simple& simple) {
  if (arguments_ == nullptr) return;
  const auto count = simple.words.size() < 2 ? std::optional<std::size_t>(1)
                                             : base::ParseInt<std::size_t>(simple.words[1].text);
  const bool certain = !simple.conditional && std::ranges::all_of(blocks_, [](const Block& block) {
    return block.kind == Kind::kBrace;
  });
  if (simple.words[0].text == "shift" && certain && count &&
      *count <= arguments_->size() - shifted_) {
    shifted_ += *count;
  } else {
    arguments_ = nullptr;
  }
}

// export, unset, read …: true when the command was one that only changes variables.
bool ShellReader::Builtin(const Simple& simple) {
  const std::string_view name = simple.words[0].text;
  if (name == "shift" ||
      (name == "set" && simple.words.size() > 1 && simple.words[1].text == "--")) {
    Shift(simple);
    return true;
  }
  const bool exports = name == "export" || name == "declare" || name == "typeset" ||
                       name == "local" || name == "readonly" || name == "setenv";
  if (!exports) {
    if (name != "unset" && name != "read" && name != "mapfile" && name != "readarray") {
      return Contains(kSteering, name);
    }
    for (const Word& word : simple.words) {
      if (IsShellName(word.text) && word.text != name) variables_.Forget(word.text);
    }
    return true;
  }
  if (name == "setenv" && simple.words.size() == 3) {
    ShellToken token;
    const std::string raw = simple.words[1].text + "=";
    if (AssignmentPrefix(raw) != raw.size()) return true;
    token.raw = raw;
    token.words = {Word{.text = raw + simple.words[2].text, .resolved = simple.words[2].resolved}};
    exported_.insert(simple.words[1].text);
    Assign(token, simple.conditional);
    return true;
  }
  for (std::size_t i = 1; i < simple.words.size(); ++i) {
    const Word& word = simple.words[i];
    const std::size_t prefix = AssignmentPrefix(word.text);
    const std::string variable = word.text.substr(0, prefix > 0 ? prefix - 1 : word.text.size());
    if (!IsShellName(variable)) continue;
    if (name == "export" || name == "declare" || name == "typeset") exported_.insert(variable);
    ShellToken token;
    token.raw = word.text;
    token.words = {word};
    if (prefix > 0) Assign(token, simple.conditional);
    if (prefix == 0 && name == "export") {
      const ShellValue* now = variables_.Find(variable);
      if (now != nullptr && now->words.size() == 1 && now->words[0].resolved) {
        SetEnvironment(variable, now->words[0].text);
      }
    }
  }
  return true;
}

void ShellReader::Emit(Simple simple) {
  if (Builtin(simple)) return;
  const auto function = functions_.find(simple.words[0].text);
  if (function != functions_.end()) {
    if (depth_ >= kMaxDepth) return;
    const std::vector<Word> arguments(simple.words.begin() + 1, simple.words.end());
    ++depth_;
    ReadRange(
        {.begin = function->second.begin, .end = function->second.end, .arguments = &arguments});
    --depth_;
    return;
  }
  for (const ShellToken& token : simple.assignments) {
    const std::size_t prefix = AssignmentPrefix(token.raw);
    if (token.words.size() == 1 && token.words[0].resolved && !token.array &&
        token.raw[prefix - 2] != '+') {
      SetEnvironment(token.raw.substr(0, prefix - 1), token.words[0].text.substr(prefix));
    }
  }
  Command command{.words = std::move(simple.words),
                  .launcher = {},
                  .place = lines_.PlaceOf(simple.begin, simple.end),
                  .input = std::move(simple.input),
                  .output = std::move(simple.output)};
  StripLaunchers(&command);
  const std::string& program = command.words[0].text;
  if (program == "eval" && command.words.size() > 1 && depth_ < kMaxDepth) {
    std::string script = command.words[1].text;
    for (std::size_t i = 2; i < command.words.size(); ++i) script += " " + command.words[i].text;
    ReadEmbedded(command, script, {});
    return;
  }
  const std::size_t script = ShellScriptWord(command);
  const bool known = script > 0 && (command.words[script].resolved ||
                                    !command.words[script].text.starts_with('$'));
  if (known && depth_ < kMaxDepth) {
    const auto behind = command.words.begin() + static_cast<std::ptrdiff_t>(script) + 1;
    const auto arguments = behind == command.words.end() ? behind : behind + 1;  // $0 left out
    ReadEmbedded(command, command.words[script].text, {arguments, command.words.end()});
    return;
  }
  const bool alone = command.words.size() == 1 && (program == "exec" || program == "time");
  if (alone || program.starts_with('-') || Contains(kSteering, program)) return;
  script_.commands.push_back(std::move(command));
}

// `bash -c SCRIPT NAME ARGUMENT…`, or a script on standard input: its commands stand where it
// stands.
void ShellReader::ReadEmbedded(const Command& outer, std::string_view script,
                               const std::vector<Word>& arguments) {
  const ShellOptions options;
  ShellReader inner(script, options, nullptr);
  inner.depth_ = depth_ + 1;
  inner.parent_ = this;
  inner.expanded_ = expanded_;
  inner.bytes_ = bytes_;
  inner.most_bytes_ = most_bytes_;
  if (!arguments.empty()) inner.arguments_ = &arguments;
  inner.Read();
  for (Command& found : inner.script_.commands) {
    if (script_.commands.size() >= kMaxCommands) return;
    found.place = outer.place;
    found.launcher.insert(found.launcher.begin(), outer.launcher.begin(), outer.launcher.end());
    script_.commands.push_back(std::move(found));
  }
  for (const auto& [name, value] : inner.script_.environment) SetEnvironment(name, value);
}

ShellScript ReadShellScript(std::string_view text, const ShellOptions& options) {
  ShellReader first(text, options, nullptr);
  first.Read();
  const ShellReader::Loops loops = first.TakeLoops();
  if (loops.empty()) return first.TakeScript();
  ShellReader second(text, options, &loops);
  second.Read();
  return second.TakeScript();
}

std::vector<Command> CommandsOfArguments(std::vector<Word> arguments, const Place& place,
                                         const std::map<std::string, std::string>& variables) {
  if (arguments.empty()) return {};
  Command command{.words = std::move(arguments), .launcher = {}, .place = place};
  StripLaunchers(&command);
  const std::size_t script_word = ShellScriptWord(command);
  if (script_word == 0) return {std::move(command)};
  ShellOptions options{.variables = variables};
  ShellScript script = ReadShellScript(command.words[script_word].text, options);
  for (Command& found : script.commands) {
    found.place = place;
    found.launcher.insert(found.launcher.begin(), command.launcher.begin(), command.launcher.end());
  }
  return std::move(script.commands);
}

}  // namespace expanse::workload::source
