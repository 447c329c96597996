// The reader behind ReadShellScript: one pass over the tokens with a stack of open blocks.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workload/line_index.h"
#include "workload/source/shell_commands.h"
#include "workload/source/shell_lexer.h"
#include "workload/source/shell_variables.h"

namespace expanse::workload::source {

class ShellReader {
 public:
  // Names that each loop changes, by the byte at which it begins: found out by a first pass, so
  // that the second knows them from the loop's first command on.
  using Loops = std::map<std::size_t, std::set<std::string>>;

  ShellReader(std::string_view text, const ShellOptions& options, const Loops* loops);
  void Read();
  ShellScript TakeScript() { return std::move(script_); }
  Loops TakeLoops() { return std::move(loops_found_); }

  ShellReader(const ShellReader&) = delete;
  ShellReader& operator=(const ShellReader&) = delete;

 private:
  enum class Kind : std::uint8_t { kIf, kLoop, kCase, kBrace, kSubshell, kFunction };
  struct Block {
    Kind kind = Kind::kBrace;
    std::size_t begin = 0;
    std::string name = {};    // of a function
    bool in_pattern = false;  // of a case: before the ")"
    std::size_t inner = 0;    // of a function: where its body begins
  };
  struct Simple {  // a simple command under way
    std::vector<ShellToken> assignments;
    std::vector<Word> words;
    std::string input;
    std::string output;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool conditional = false;  // behind || or a test and &&
  };
  struct Range {  // what is being read: the script, or a function's body
    std::size_t begin = 0;
    std::size_t end = 0;
    const std::vector<Word>* arguments = nullptr;  // null: the script's own
  };

  void ReadRange(const Range& range);
  void Newline(const ShellToken& token);
  void Operator(ShellLexer* lexer, const ShellToken& token);
  void Redirect(ShellLexer* lexer, const ShellToken& token);
  void WordToken(ShellLexer* lexer, const ShellToken& token);
  bool Keyword(ShellLexer* lexer, const ShellToken& token);
  void BeginLoopOverWords(ShellLexer* lexer, const ShellToken& token);
  void Open(Kind kind, std::size_t begin, std::string name = {});
  void Close(std::initializer_list<Kind> kinds, std::size_t end);
  void CloseTop(std::size_t end);
  bool InPattern() const;
  bool BeginsFunction(const ShellLexer& lexer) const;

  void EndCommand();
  void Assign(const ShellToken& token, bool conditional);
  void SetEnvironment(std::string_view name, std::string_view value);
  void Emit(Simple simple);
  bool Builtin(const Simple& simple);
  void Shift(const Simple& simple);
  void ReadEmbedded(const Command& outer, std::string_view script,
                    const std::vector<Word>& arguments);
  const ShellValue* Lookup(std::string_view name);

  std::string_view text_;
  const ShellOptions& options_;
  const Loops* loops_;
  Loops loops_found_;
  ShellScript script_;
  ShellVariables variables_;
  std::map<std::string, Range, std::less<>> functions_;
  std::set<std::string, std::less<>> exported_;
  LineIndex lines_;
  std::vector<Word> script_arguments_;

  // Of the range that is being read.
  std::vector<Block> blocks_;
  Simple simple_;
  bool at_command_ = true;    // the next word may be a keyword or a command's name
  bool conditional_ = false;  // the next command runs only if another went well or badly
  bool last_was_test_ = false;
  int skipping_ = 0;                              // within function definitions
  const std::vector<Word>* arguments_ = nullptr;  // null: not known
  std::size_t shifted_ = 0;
  ShellValue found_value_;              // what Lookup returned last, where no variable holds it
  std::vector<std::size_t> documents_;  // commands of this line that wait for a here-document
  std::size_t pending_documents_ = 0;   // of the command under way

  const ShellReader* parent_ = nullptr;  // of an embedded script
  std::size_t own_expanded_ = 0;
  std::size_t* expanded_ = &own_expanded_;
  int depth_ = 0;  // of functions and embedded scripts
  // Bytes read by all readers of a script, and how many there may be: functions and documents that
  // are read again and again may not repeat without end.
  std::size_t own_bytes_ = 0;
  std::size_t* bytes_ = &own_bytes_;
  std::size_t most_bytes_;
};

}  // namespace expanse::workload::source
