#include "workload/syntax/tree.h"

#include <tree_sitter/api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "workload/syntax/pieces.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace expanse::workload::syntax {
namespace {

// tree-sitter 0.20 writes beyond its memory when an error leaves 65,536 tokens or more in one node
// (seen with as many open brackets); a token has a byte. And recovery at the end of a text may take
// time quadratic in it, within one step that looks at no clock (1 s for 16,000 of "@").
constexpr std::size_t kMaxPiece = 16'000;

// Its clock forgets to carry nanoseconds, so that it may give up early: it is asked to go on until
// ours says that the time is over.
constexpr std::uint64_t kSliceMicros = 10'000;

const TSLanguage* LanguageOf(Language language) {
  switch (language) {
    case Language::kPython:
      return tree_sitter_python();
  }
  return nullptr;
}

struct DeleteParser {
  void operator()(TSParser* parser) const { ts_parser_delete(parser); }
};
struct DeleteTree {
  void operator()(TSTree* tree) const { ts_tree_delete(tree); }
};

class Cursor {
 public:
  explicit Cursor(TSNode node) : cursor_(ts_tree_cursor_new(node)) {}
  ~Cursor() { ts_tree_cursor_delete(&cursor_); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  TSTreeCursor* get() { return &cursor_; }

 private:
  TSTreeCursor cursor_;
};

}  // namespace

base::Result<Tree> Tree::Parse(Language language, std::string_view text, const TreeLimits& limits) {
  if (text.size() > limits.text_bytes) {
    return base::Fail(base::Code::kResourceExhausted, "syntax.too_large",
                      "larger than " + std::to_string(limits.text_bytes) + " bytes");
  }
  const TSLanguage* grammar = LanguageOf(language);
  const std::unique_ptr<TSParser, DeleteParser> parser(ts_parser_new());
  EXPANSE_CHECK(parser != nullptr && ts_parser_set_language(parser.get(), grammar));
  ts_parser_set_timeout_micros(parser.get(), kSliceMicros);
  const auto deadline = std::chrono::steady_clock::now() + limits.time;
  Tree tree(text, grammar);
  std::size_t begin = 0;
  for (const std::size_t end : CutPython(text, kMaxPiece)) {
    std::unique_ptr<TSTree, DeleteTree> parsed;
    while (parsed == nullptr) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return base::Fail(base::Code::kDeadlineExceeded, "syntax.timeout",
                          "not parsed within the time for one file");
      }
      parsed.reset(ts_parser_parse_string(parser.get(), nullptr, text.data() + begin,
                                          static_cast<std::uint32_t>(end - begin)));
    }
    if (!tree.Append(parsed.get(), begin, limits.nodes)) {
      return base::Fail(base::Code::kResourceExhausted, "syntax.too_large",
                        "more than " + std::to_string(limits.nodes) + " syntax nodes");
    }
    begin = end;
  }
  tree.nodes_[0].end = static_cast<std::uint32_t>(text.size());
  return tree;
}

// Copies the nodes below a piece's root under the root of all, which the first piece brings.
bool Tree::Append(const TSTree* piece, std::size_t offset, std::size_t limit) {
  const auto shift = static_cast<std::uint32_t>(offset);
  Cursor cursor(ts_tree_root_node(piece));
  const auto add = [&](std::uint32_t parent) {
    const TSNode node = ts_tree_cursor_current_node(cursor.get());
    nodes_.push_back({.begin = ts_node_start_byte(node) + shift,
                      .end = ts_node_end_byte(node) + shift,
                      .parent = parent,
                      .after = 0,
                      .kind = ts_node_symbol(node),
                      .field = ts_tree_cursor_current_field_id(cursor.get()),
                      .named = ts_node_is_named(node)});
  };
  if (nodes_.empty()) add(0);
  nodes_[0].after = static_cast<std::uint32_t>(nodes_.size());
  if (!ts_tree_cursor_goto_first_child(cursor.get())) return true;
  std::uint32_t parent = 0;
  while (true) {
    if (nodes_.size() >= limit) return false;
    auto index = static_cast<std::uint32_t>(nodes_.size());
    add(parent);
    if (ts_tree_cursor_goto_first_child(cursor.get())) {
      parent = index;
      continue;
    }
    while (true) {
      nodes_[index].after = static_cast<std::uint32_t>(nodes_.size());
      if (index == 0) return true;
      if (ts_tree_cursor_goto_next_sibling(cursor.get())) break;
      ts_tree_cursor_goto_parent(cursor.get());
      index = nodes_[index].parent;
    }
    parent = nodes_[index].parent;
  }
}

std::string_view Node::kind() const {
  if (tree_ == nullptr) return {};
  return ts_language_symbol_name(tree_->language_, tree_->nodes_[index_].kind);
}

bool Node::named() const { return tree_ != nullptr && tree_->nodes_[index_].named; }

std::string_view Node::field() const {
  if (tree_ == nullptr || tree_->nodes_[index_].field == 0) return {};
  return ts_language_field_name_for_id(tree_->language_, tree_->nodes_[index_].field);
}

std::size_t Node::begin() const { return tree_ == nullptr ? 0 : tree_->nodes_[index_].begin; }
std::size_t Node::end() const { return tree_ == nullptr ? 0 : tree_->nodes_[index_].end; }

std::string_view Node::text() const {
  return tree_ == nullptr ? std::string_view() : tree_->text_.substr(begin(), end() - begin());
}

Node Node::parent() const {
  return tree_ == nullptr || index_ == 0 ? Node() : Node(tree_, tree_->nodes_[index_].parent);
}

Node Node::first_child() const {
  if (tree_ == nullptr || tree_->nodes_[index_].after == index_ + 1) return {};
  return {tree_, index_ + 1};
}

Node Node::next_sibling() const {
  if (tree_ == nullptr || index_ == 0) return {};
  const auto& entry = tree_->nodes_[index_];
  return entry.after < tree_->nodes_[entry.parent].after ? Node(tree_, entry.after) : Node();
}

Node Node::Child(std::string_view field) const {
  for (Node child = first_child(); child; child = child.next_sibling()) {
    if (child.field() == field) return child;
  }
  return {};
}

std::vector<Node> Node::NamedChildren() const {
  std::vector<Node> children;
  for (Node child = first_child(); child; child = child.next_sibling()) {
    if (child.named() && !child.is("comment")) children.push_back(child);
  }
  return children;
}

Below Node::below() const {
  if (tree_ == nullptr) return {};
  return {NodeIterator(tree_, index_ + 1), NodeIterator(tree_, tree_->nodes_[index_].after)};
}

}  // namespace expanse::workload::syntax
