// Values of a Python text without running it: literals, names that are bound once to a literal,
// arguments with literal defaults or given on the command line.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/source/command_facts.h"
#include "workload/source/fact_collector.h"
#include "workload/submission.h"
#include "workload/syntax/tree.h"

namespace expanse::workload::source {

// The text of a string literal without prefix and quotes; nothing for f-strings and for strings
// with escapes other than of quotes.
std::optional<std::string> PythonString(const syntax::Node& string);

// "torch.optim.AdamW" of a name or attribute chain; empty for anything else.
std::string DottedName(const syntax::Node& node);

class PythonValues {
 public:
  // `tree` must outlive the values.
  PythonValues(const syntax::Tree& tree, const std::vector<Word>& arguments);

  // What an expression is, as far as it can be told. Arithmetic of numbers is done.
  std::optional<Literal> Evaluate(const syntax::Node& expression) const;
  // Given on the command line as --name VALUE, --name=VALUE or, as a switch, alone.
  std::optional<Literal> OnCommandLine(std::string_view name) const;

  struct Argument {
    std::string name;                    // "batch_size"
    std::vector<std::string> spellings;  // "--batch-size", "-b"
    syntax::Node fallback;               // its default, if any
    syntax::Node call;
  };
  // add_argument("--batch-size", default=32), click's option(…), absl's DEFINE_integer(…).
  const std::vector<Argument>& arguments() const { return arguments_; }
  // The value that an argument has for this command; absent where neither default nor command tell.
  std::optional<Literal> ValueOf(const Argument& argument) const;

 private:
  struct Bound {
    syntax::Node value;
    bool ambiguous = false;
  };
  using Names = std::map<std::string, Bound, std::less<>>;

  void Bind(Names* names, std::string_view name, const syntax::Node& value);
  void BindTarget(const syntax::Node& target, const syntax::Node& value);
  void AddArgument(const syntax::Node& call);
  std::optional<Literal> Evaluate(const syntax::Node& expression, int depth) const;
  std::optional<Literal> EvaluateAttribute(const syntax::Node& attribute, int depth) const;
  std::optional<Literal> EvaluateCall(const syntax::Node& call, int depth) const;
  std::optional<Literal> Lookup(const Names& names, std::string_view name, int depth) const;
  std::optional<Literal> NamedArgument(std::string_view name, int depth) const;

  Names variables_;
  Names attributes_;  // self.x = …, config.x = …, {"x": …}
  std::vector<Argument> arguments_;
  std::map<std::string, std::size_t, std::less<>> argument_index_;
  Options given_;
  mutable std::size_t steps_ = 0;
};

}  // namespace expanse::workload::source
