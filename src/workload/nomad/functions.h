// The functions of Nomad's HCL2 that depend on their arguments alone.
#pragma once

#include <string_view>
#include <vector>

#include "workload/nomad/value.h"

namespace expanse::workload::hcl {

// Unresolved for a function that is not evaluated here (files, time, random numbers, encodings that
// a request does not need), for wrong arguments, and where an argument that matters is unresolved.
// Text of at most 4 MiB and lists of at most 100,000 values come back.
Value CallFunction(std::string_view name, const std::vector<Value>& arguments);

namespace functions {
using Function = Value (*)(const std::vector<Value>& arguments);
struct Entry {
  std::string_view name;
  std::size_t least;
  std::size_t most;
  Function function;
  // Arguments may hold unresolved values inside: they are handed on, not looked at.
  bool structural = false;
};
inline constexpr std::size_t kMany = 1000;
inline constexpr std::size_t kMaxListed = 100'000;

const Entry* FindNumber(std::string_view name);      // functions_number.cc
const Entry* FindText(std::string_view name);        // functions_text.cc
const Entry* FindCollection(std::string_view name);  // functions_collection.cc

Value Wrong(std::string_view what);  // an argument that the function does not take
Value Text(std::string text);        // a string, unresolved beyond 4 MiB
Value ReverseText(const std::vector<Value>& arguments);  // functions_text.cc
Value Format(const std::vector<Value>& arguments);       // functions_format.cc
Value JsonEncode(const std::vector<Value>& arguments);
Value JsonDecode(const std::vector<Value>& arguments);
}  // namespace functions

}  // namespace expanse::workload::hcl
