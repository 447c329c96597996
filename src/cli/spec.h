// How a command and its options are declared: once, as constants. Parsing (parse.h), --help and the
// reference (help.h), shell completions (completions.h) and man pages (man.h) are all made from
// these declarations, so none of them can disagree. Everything here is constant-initialised:
// start-up does no work for commands that are not asked for.
#pragma once

#include <cstdint>
#include <expected>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::cli {

struct App;       // app.h
class Arguments;  // parse.h

// What ends a command early: the error, and what the user can do about it (the `Try:` line). An
// empty hint is filled in from the error's code.
struct Failure {
  base::Error error;
  std::string hint;

  Failure(base::Error e) : error(std::move(e)) {}  // NOLINT: errors of the layers below become ours
  Failure(base::Error e, std::string h) : error(std::move(e)), hint(std::move(h)) {}
};

// The exit code of a command that did its work.
using CommandResult = std::expected<int, Failure>;

[[nodiscard]] inline std::unexpected<Failure> FailWith(base::Code code, std::string reason,
                                                       std::string message, std::string hint = {}) {
  return std::unexpected(
      Failure(base::Error{code, std::move(reason), std::move(message)}, std::move(hint)));
}
// A mistake on the command line: exit code 2.
[[nodiscard]] inline std::unexpected<Failure> FailUsage(std::string message,
                                                        std::string hint = {}) {
  return FailWith(base::Code::kInvalidArgument, "cli.usage", std::move(message), std::move(hint));
}

enum class ValueKind : std::uint8_t {
  kFlag,  // no value; --flag=false is accepted too
  kText,
  kInt,       // within [min, max]
  kDuration,  // base::ParseDuration
  kBytes,     // base::ParseBytes
  kTime,      // RFC 3339
  kUrl,       // http:// or https:// with a host
  kPath,      // completed as a file name
  kChoice,    // one of `choices`
};

struct OptionSpec {
  std::string_view name;        // without the dashes
  std::string_view alias = {};  // another spelling
  ValueKind kind = ValueKind::kText;
  std::string_view value_name = {};
  std::string_view help;
  std::string_view default_text = {};  // for people; the command applies it
  std::string_view environment = {};   // read when the option is absent
  std::span<const std::string_view> choices = {};
  std::int64_t min =
      std::numeric_limits<std::int64_t>::min();  // kInt; kBytes; kDuration in milliseconds
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  bool repeatable = false;
};

struct PositionalSpec {
  std::string_view name;  // "EXECUTION_ID"
  std::string_view help;
  bool required = true;
  bool repeated = false;  // takes all that follow; only the last one may
  bool is_file = false;   // completed as file names, beside the sub-commands there may be
};

struct ExampleSpec {
  std::string_view command;
  std::string_view what;
};

// A variable that has no option beside it, such as a secret.
struct EnvironmentSpec {
  std::string_view name;
  std::string_view help;
};

struct CommandSpec {
  std::string_view name;
  std::string_view alias = {};   // another spelling
  std::string_view summary;      // one line, no full stop
  std::string_view description;  // paragraphs separated by blank lines
  std::span<const OptionSpec> options = {};
  std::span<const PositionalSpec> positionals = {};
  std::span<const EnvironmentSpec> environment = {};
  std::span<const ExampleSpec> examples = {};
  std::span<const CommandSpec* const> children = {};
  // A command may have positionals and children: a first word that names a child is the child.
  // Everything from the first positional on belongs to it, options of other programs included.
  bool stop_at_positional = false;
  CommandResult (*run)(App& app, const Arguments& arguments) = nullptr;  // none: only has children
};

// Options that every command has.
std::span<const OptionSpec> CommonOptions();

}  // namespace expanse::cli
