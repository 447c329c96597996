// HCL as a tree with the exact bytes of everything: the syntax of Nomad's jobspecs, HCL2 and what
// the older HCL1 allowed besides. JSON is read into the same tree (json.h). Pure data; the tree
// keeps no reference to the text.
//
// Bounded: at most kMaxNodes expressions and statements, kMaxDepth levels of nesting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workload/submission.h"

namespace expanse::workload::hcl {

inline constexpr std::size_t kMaxNodes = 200'000;
inline constexpr int kMaxDepth = 100;

enum class Kind : std::uint8_t {
  kNull,
  kBool,         // number 0 or 1
  kNumber,       // number
  kString,       // text, unescaped
  kTemplate,     // children: strings and expressions, put together
  kTemplateIf,   // children: condition, then (a template), else (a template)
  kTemplateFor,  // names; children: collection, body (a template)
  kTuple,        // children
  kObject,       // children: key, value, key, value …; a bare word as key is a string
  kVariable,     // text: the name
  kAttribute,    // text: the name; children: of what
  kIndex,        // children: of what, key
  kSplat,        // children: of what, and what is asked of each (on kVariable "*")
  kCall,         // text: the function; children: arguments; number 1: the last is expanded (...)
  kUnary,        // text: the operator; children: operand
  kBinary,       // text: the operator; children: left, right
  kConditional,  // children: condition, then, else
  kForTuple,     // names; children: collection, value[, condition]
  kForObject,    // names; children: collection, key, value[, condition]; number 1: grouped (...)
  kForeign,      // a template of another language: [[ .x ]], {{ x }}, ${X} outside of a string
};

struct Expression {
  Kind kind = Kind::kNull;
  std::size_t begin = 0;  // bytes of the text, quotes included
  std::size_t end = 0;
  double number = 0;
  std::string text;
  std::vector<std::string> names;  // of for: value, or key and value
  std::vector<Expression> children;
  int height = 1;  // levels of this tree
};

struct Attribute {
  std::string name;
  std::size_t begin = 0;  // of the name
  std::size_t name_end = 0;
  Expression value;
};

struct Label {
  std::string text;
  std::size_t begin = 0;  // without quotes
  std::size_t end = 0;
  bool foreign = false;  // a template of another language: not known
};

struct Block;

enum class Style : std::uint8_t { kHcl, kJson };

// What stands between braces, or the whole file (then open and close are its first and last byte).
struct Body {
  std::vector<Attribute> attributes;
  std::vector<Block> blocks;
  std::size_t open = 0;   // after the brace
  std::size_t close = 0;  // of the closing brace
  Style style = Style::kHcl;

  const Attribute* FindAttribute(std::string_view name) const;  // the first; null without one
  const Block* FindBlock(std::string_view type) const;
};

struct Block {
  std::string type;
  std::size_t begin = 0;
  std::vector<Label> labels;
  Body body;
};

// Refuses with "syntax", "templated", "too_large" (nodes) or "too_deep".
Parsed<Body> ParseBody(std::string_view text);

// The parts of `text` as a template: `${…}`, `%{…}` and their escapes. For strings that JSON has
// unescaped: every place is set to [begin, end).
Parsed<Expression> ParseTemplateText(std::string_view text, std::size_t begin, std::size_t end);

// The code point as UTF-8; U+FFFD for what is none.
void AppendUtf8(std::uint32_t code, std::string& out);

// True for a string that another language has still to fill in: [[ .x ]], {{ x }}, <% x %>.
bool HasForeignTemplate(std::string_view text);

}  // namespace expanse::workload::hcl
