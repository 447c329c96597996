// What a caller may tell the parsers besides the text.
#pragma once

#include <map>
#include <string>

namespace expanse::workload {

struct ParseOptions {
  // Values for Nomad's variables (-var NAME=VALUE) by name; others take their default or stay
  // unresolved.
  std::map<std::string, std::string> variables = {};
};

}  // namespace expanse::workload
