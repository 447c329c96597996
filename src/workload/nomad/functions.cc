#include "workload/nomad/functions.h"

#include <algorithm>
#include <string>

#include "workload/submission.h"

namespace expanse::workload::hcl {

namespace functions {

Value Wrong(std::string_view what) { return Value::Unresolved(std::string(what)); }

Value Text(std::string text) {
  if (text.size() > kMaxText) return Value::Unresolved("more text than is made");
  return Value::String(std::move(text));
}

}  // namespace functions

Value CallFunction(std::string_view name, const std::vector<Value>& arguments) {
  // Nomad's own are in the namespace core since 1.9.
  if (name.starts_with("core::")) name.remove_prefix(6);
  const std::string called = std::string(name.substr(0, 60)) + "()";
  const functions::Entry* entry = functions::FindText(name);
  if (entry == nullptr) entry = functions::FindCollection(name);
  if (entry == nullptr) entry = functions::FindNumber(name);
  if (entry == nullptr) return Value::Unresolved("function " + called);
  if (arguments.size() < entry->least || arguments.size() > entry->most) {
    return Value::Unresolved("wrong number of arguments of " + called);
  }
  for (const Value& argument : arguments) {
    if (!argument.known()) return argument;
    if (!entry->structural && !argument.FullyKnown()) {
      return Value::Unresolved("an argument of " + called + " that is not known");
    }
  }
  Value out = entry->function(arguments);
  return out.known() ? out : Value::Unresolved(called + ": " + out.reason());
}

}  // namespace expanse::workload::hcl
