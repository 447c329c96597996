// Evaluates HCL expressions as Nomad does when it reads a jobspec: variables, locals and functions
// are known then; names that are none of these (node.class, NOMAD_PORT_http, attr.…) are left as
// text,
// "${node.class}", for the client to fill in. What needs the world (files, clocks, random numbers)
// or a value that nobody gave is unresolved.
//
// Bounded: after kMaxSteps steps or kMaxBytes of text made, everything is unresolved. Cycles of
// locals are unresolved.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/nomad/hcl.h"
#include "workload/nomad/value.h"

namespace expanse::workload::hcl {

inline constexpr std::size_t kMaxSteps = 500'000;
inline constexpr std::size_t kMaxBytes = std::size_t{32} << 20;

// Names that are bound around an expression: those of for, and of a dynamic block.
struct Scope {
  const Scope* outer = nullptr;
  std::string_view name;
  const Value* value = nullptr;
};

class Evaluator {
 public:
  // `text` and `file` (whose variable and locals blocks count) must outlive it. `given`: values of
  // variables, as on Nomad's command line.
  Evaluator(std::string_view text, const Body& file,
            const std::map<std::string, std::string>& given);

  Value Evaluate(const Expression& expression, const Scope* scope = nullptr);

  // Where the value of var.NAME or local.NAME is written: the default or the local itself. Null
  // where it is not in the file, or was given.
  const Expression* Source(std::string_view root, std::string_view name) const;

 private:
  struct Named {
    const Expression* expression = nullptr;
    const Expression* type = nullptr;
    const std::string* given = nullptr;
    bool is_variable = false;
    bool started = false;
    bool done = false;
    Value value;
  };
  using Names = std::map<std::string, Named, std::less<>>;

  Value EvaluateKind(const Expression& expression, const Scope* scope);
  Value Reference(const Expression& expression, const Scope* scope);
  Value NamedValue(Names& names, std::string_view root, std::string_view name);
  static Value Given(const Named& named, const std::string& what);
  Value Template(const Expression& expression, const Scope* scope);
  Value TemplateFor(const Expression& expression, const Scope* scope);
  Value Tuple(const Expression& expression, const Scope* scope);
  Value Object(const Expression& expression, const Scope* scope);
  Value Member(const Expression& expression, const Scope* scope);
  Value Splat(const Expression& expression, const Scope* scope);
  Value Unary(const Expression& expression, const Scope* scope);
  Value Binary(const Expression& expression, const Scope* scope);
  Value Conditional(const Expression& expression, const Scope* scope);
  Value For(const Expression& expression, const Scope* scope);
  Value Call(const Expression& expression, const Scope* scope);
  // Calls `each` with the scope of every element; false where it is no collection (then `why`).
  bool Each(const Expression& expression, const Scope* scope, Value& why,
            const std::function<bool(const Scope&)>& each);

  Value Unknown(std::string reason, const Expression& expression) const;
  bool Spend(std::size_t steps, std::size_t bytes = 0);

  std::string_view text_;
  Names variables_;
  Names locals_;
  std::size_t steps_ = 0;
  std::size_t bytes_ = 0;
  int depth_ = 0;
};

// The text of a traversal whose root is not var or local ("node.class", "env[\"HOME\"]"), or
// nothing for what is none.
std::optional<std::string> TraversalText(const Expression& expression);

// The variable at the root of a traversal; null where it has none.
const Expression* TraversalRoot(const Expression& expression);

}  // namespace expanse::workload::hcl
