// Turns argv into a command and checked values, by the declarations of spec.h. No side effects.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/settings.h"
#include "base/time.h"
#include "cli/spec.h"

namespace expanse::cli {

// The values of one invocation. Getters abort on a name that the command does not declare: a bug of
// ours, never of the user.
class Arguments {
 public:
  explicit Arguments(const CommandSpec& command) : command_(&command) {}

  bool Has(std::string_view option) const;  // given, by the command line or the environment
  bool Flag(std::string_view option) const;
  std::string Text(std::string_view option, std::string_view absent = {}) const;
  std::vector<std::string> Texts(std::string_view option) const;
  std::int64_t Int(std::string_view option, std::int64_t absent) const;
  std::chrono::milliseconds Duration(std::string_view option) const;  // 0 when absent
  base::Bytes Bytes(std::string_view option) const;
  base::WallTime Time(std::string_view option) const;

  const std::vector<std::string>& positionals() const { return positionals_; }
  const CommandSpec& command() const { return *command_; }

 private:
  friend class Parser;
  struct Value {
    std::string text;
    std::int64_t number = 0;  // int, flag, milliseconds, bytes or microseconds since 1970
  };
  const std::vector<Value>* Find(std::string_view option) const;

  const CommandSpec* command_;
  std::map<std::string, std::vector<Value>, std::less<>> values_;
  std::vector<std::string> positionals_;
};

struct Invocation {
  std::vector<const CommandSpec*> path;  // from the root to the command
  Arguments arguments;
  bool help = false;     // --help, or a group without a command of its own
  bool version = false;  // --version
};

using ParseResult = std::expected<Invocation, Failure>;

// `arguments` is argv without the program's name. Fails with cli.usage and a hint.
ParseResult Parse(const CommandSpec& root, const std::vector<std::string>& arguments,
                  const base::Settings::Environment& environment);

// "expanse compute register".
std::string PathName(const std::vector<const CommandSpec*>& path);

}  // namespace expanse::cli
