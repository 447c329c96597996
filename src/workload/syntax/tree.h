// The syntax tree of a text: tree-sitter's, copied into one array in the order of the text, so that
// walking it is a loop (trees may be a hundred thousand levels deep), siblings cost O(1) and
// nothing of tree-sitter is seen outside tree.cc. 24 bytes a node. Errors in the text are nodes of
// kind "ERROR" among the others; a tree is made of whatever bytes there are. Texts of more than
// 16 KB are parsed in pieces that begin with a statement, all under one root: what a piece's end
// cuts in two (a class of 20 KB) is several siblings in the tree.
//
//   auto tree = Tree::Parse(Language::kPython, text);
//   for (Node node : *tree)                       // every node, parents before children
//     if (node.is("call")) Use(node.Child("function").text(), node.Child("arguments"));
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/result.h"

struct TSLanguage;
struct TSTree;

namespace expanse::workload::syntax {

enum class Language : std::uint8_t { kPython };

struct TreeLimits {
  std::size_t text_bytes = std::size_t{1} << 20;
  std::size_t nodes = 1'000'000;
  std::chrono::microseconds time = std::chrono::seconds(1);
};

class Tree;
class Below;

// A node: a reference into a tree, which must stay where it is, or nothing. Everything of nothing
// is empty, so that look-ups can be chained without asking after each.
class Node {
 public:
  Node() = default;
  explicit operator bool() const { return tree_ != nullptr; }
  bool operator==(const Node&) const = default;

  std::string_view kind() const;  // as in the grammar: "call", "identifier", "(" …
  bool is(std::string_view kind) const { return tree_ != nullptr && this->kind() == kind; }
  bool named() const;              // not a token that the grammar writes as text
  std::string_view field() const;  // of the parent: "function"; empty where it has no name
  std::size_t begin() const;
  std::size_t end() const;
  std::string_view text() const;

  Node parent() const;
  Node first_child() const;
  Node next_sibling() const;
  Node Child(std::string_view field) const;  // the first with this field
  std::vector<Node> NamedChildren() const;   // comments left out
  // Every node below this one, parents before children, without this one.
  Below below() const;

 private:
  friend class Tree;
  friend class NodeIterator;
  Node(const Tree* tree, std::uint32_t index) : tree_(tree), index_(index) {}
  const Tree* tree_ = nullptr;
  std::uint32_t index_ = 0;
};

class NodeIterator {
 public:
  using value_type = Node;
  using difference_type = std::ptrdiff_t;
  NodeIterator() = default;
  NodeIterator(const Tree* tree, std::uint32_t index) : node_(tree, index) {}
  Node operator*() const { return node_; }
  NodeIterator& operator++() {
    ++node_.index_;
    return *this;
  }
  NodeIterator operator++(int) {
    NodeIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const NodeIterator& other) const { return node_ == other.node_; }

 private:
  Node node_;
};

class Below {
 public:
  Below() = default;
  Below(NodeIterator begin, NodeIterator end) : begin_(begin), end_(end) {}
  NodeIterator begin() const { return begin_; }
  NodeIterator end() const { return end_; }

 private:
  NodeIterator begin_;
  NodeIterator end_;
};

class Tree {
 public:
  // `text` must outlive the tree. Fails with syntax.too_large (text or nodes) or syntax.timeout.
  static base::Result<Tree> Parse(Language language, std::string_view text,
                                  const TreeLimits& limits = {});

  Tree(Tree&&) = default;
  Tree& operator=(Tree&&) = default;

  Node root() const { return {this, 0}; }
  std::size_t size() const { return nodes_.size(); }
  std::string_view text() const { return text_; }
  NodeIterator begin() const { return {this, 0}; }
  NodeIterator end() const { return {this, static_cast<std::uint32_t>(nodes_.size())}; }

 private:
  friend class Node;
  struct Entry {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t parent = 0;
    std::uint32_t after = 0;  // index behind the last node below this one
    std::uint16_t kind = 0;
    std::uint16_t field = 0;
    bool named = false;
  };
  Tree(std::string_view text, const TSLanguage* language) : text_(text), language_(language) {}
  bool Append(const TSTree* piece, std::size_t offset, std::size_t limit);

  std::string_view text_;
  std::vector<Entry> nodes_;
  const TSLanguage* language_ = nullptr;
};

}  // namespace expanse::workload::syntax
