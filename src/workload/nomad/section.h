// Ways into a jobspec that do not depend on how it is spelled: blocks, dynamic blocks, and
// attributes that hold an object where a block could stand (env = {…}, HCL1's resources = {…}).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/line_index.h"
#include "workload/nomad/evaluate.h"
#include "workload/nomad/hcl.h"

namespace expanse::workload::nomad {

// What all readers share. One per reading of a file.
struct Context {
  Context(std::string_view text, const hcl::Body& file,
          const std::map<std::string, std::string>& given)
      : text(text), lines(text), evaluator(text, file, given) {}

  std::string_view text;
  LineIndex lines;
  hcl::Evaluator evaluator;
  std::vector<Note> notes;
  // Bodies made of attributes that stand for blocks.
  std::map<const hcl::Expression*, std::unique_ptr<const hcl::Body>> made;

  // At most kMaxNotes of them.
  void AddNote(std::size_t offset, std::string reason, std::string message);
  // True while there is room for so much more text in the submission: one literal may be the value
  // of many tasks' environment or arguments.
  bool Take(std::size_t bytes);

 private:
  std::size_t taken_ = 0;
};

// One block, with the names that a dynamic block bound around it.
struct Section {
  const hcl::Body* body = nullptr;
  const hcl::Scope* scope = nullptr;
  std::string label;            // the first; empty without one
  std::size_t label_begin = 0;  // of its text in the file; both zero where it has none
  std::size_t label_end = 0;
  std::size_t begin = 0;   // where the block begins
  bool is_object = false;  // an attribute's object, not a block
  bool repeated = false;   // one of several made of the same text, or of how many is not known

  const hcl::Expression* Find(std::string_view name) const;  // null is as good as not written
  const hcl::Expression* FindWritten(std::string_view name) const;
};

// Calls `visit` for every block of a type in file order, dynamic ones last. False as soon as
// `visit` says so. Where for_each is unresolved, or no collection, `visit` sees the content once,
// with the iterator unresolved, and there is a note.
bool ForEachSection(Context& context, const Section& in, std::string_view type,
                    const std::function<bool(const Section&)>& visit);

// The members of all blocks of a type as one object: env, meta, config. Blocks inside are left out.
hcl::Value Members(Context& context, const Section& in, std::string_view type);

// The value of an attribute; null where it is not written.
hcl::Value Get(Context& context, const Section& in, std::string_view name);
// As text of at most 1024 bytes; as written where it is unresolved, empty where it is no text.
std::string GetName(Context& context, const Section& in, std::string_view name);

// The bytes of an expression without quotes.
Place PlaceOfValue(const Context& context, const hcl::Expression& expression);

// True for text that a client or another template language has still to fill in.
bool IsRuntimeText(std::string_view text);

}  // namespace expanse::workload::nomad
