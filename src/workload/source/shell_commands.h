// The commands that a shell script runs, as far as the script itself tells: functions are followed
// where they are called, variables replaced where literals were given, launchers taken off
// (launchers.h), branches and loops listed once. A variable that a branch or a loop changes is
// unknown from there on. Any bytes; linear in the text, with a bound on what functions may repeat.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload::source {

struct ShellOptions {
  std::size_t begin = 0;  // of the script in the text; places are those of the text
  std::map<std::string, std::string> variables = {};  // the environment, as far as it is known
  // $1, $2 …; empty: not known, and ${1:-default} is its default.
  std::vector<std::string> arguments = {};
};

struct ShellScript {
  // Without what only steers the script: echo, cd, export, test, set, exit …
  std::vector<Command> commands;
  // What commands see: exported literals, and NAME=value in front of a command.
  std::map<std::string, std::string> environment;
};

ShellScript ReadShellScript(std::string_view text, const ShellOptions& options = {});

// Of an argument vector, as containers and tasks have it: launchers taken off, `sh -c SCRIPT` read
// as a script. All commands stand at `place`.
std::vector<Command> CommandsOfArguments(std::vector<Word> arguments, const Place& place,
                                         const std::map<std::string, std::string>& variables = {});

}  // namespace expanse::workload::source
