#include "workload/syntax/tree.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace expanse::workload::syntax {
namespace {

Node FirstOf(const Tree& tree, std::string_view kind) {
  for (const Node node : tree) {
    if (node.is(kind)) return node;
  }
  return {};
}

TEST(SyntaxTree, NodesOfACallAreReachedByField) {
  constexpr std::string_view text = "x = torch.load('a.pt', map_location = 'cpu')\n";
  const auto tree = Tree::Parse(Language::kPython, text);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->root().kind(), "module");
  EXPECT_FALSE(tree->root().parent());
  EXPECT_FALSE(tree->root().next_sibling());
  const Node call = FirstOf(*tree, "call");
  EXPECT_EQ(call.field(), "right");
  EXPECT_EQ(call.Child("function").text(), "torch.load");
  const auto arguments = call.Child("arguments").NamedChildren();
  ASSERT_EQ(arguments.size(), 2U);
  EXPECT_EQ(arguments[0].text(), "'a.pt'");
  EXPECT_EQ(arguments[1].kind(), "keyword_argument");
  EXPECT_EQ(arguments[1].Child("name").text(), "map_location");
  EXPECT_EQ(arguments[1].Child("value").text(), "'cpu'");
  EXPECT_EQ(arguments[1].parent(), call.Child("arguments"));
  EXPECT_EQ(text.substr(call.begin(), call.end() - call.begin()), call.text());
}

TEST(SyntaxTree, BelowIsTheSubtreeAlone) {
  const auto tree = Tree::Parse(Language::kPython, "def f(a):\n  return a\nb = 1\n");
  ASSERT_TRUE(tree);
  std::vector<std::string> identifiers;
  for (const Node node : FirstOf(*tree, "function_definition").below()) {
    if (node.is("identifier")) identifiers.emplace_back(node.text());
  }
  EXPECT_EQ(identifiers, (std::vector<std::string>{"f", "a", "a"}));
}

TEST(SyntaxTree, NothingHasNothing) {
  const Node nothing;
  EXPECT_FALSE(nothing);
  EXPECT_FALSE(nothing.Child("left").Child("right").first_child().next_sibling().parent());
  EXPECT_EQ(nothing.text(), "");
  EXPECT_EQ(nothing.kind(), "");
  for (const Node node : nothing.below()) FAIL() << node.kind();
}

TEST(SyntaxTree, TextWithErrorsHasATree) {
  const auto tree = Tree::Parse(Language::kPython, "def (:\n  ]]\nimport torch\n");
  ASSERT_TRUE(tree);
  EXPECT_TRUE(FirstOf(*tree, "ERROR"));
  const auto empty = Tree::Parse(Language::kPython, "");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->size(), 1U);
}

TEST(SyntaxTree, MovesWithItsNodes) {
  auto tree = Tree::Parse(Language::kPython, "import torch\n");
  ASSERT_TRUE(tree);
  const Tree moved = std::move(*tree);
  EXPECT_EQ(FirstOf(moved, "dotted_name").text(), "torch");
}

// Each of these broke the process at some size, or would in a walk that recurses.
TEST(SyntaxTree, AnyNestingAndAnyErrorIsATree) {
  for (const std::string_view piece :
       {"(",   "[",   "f(",  "-",      "not ",    "{1:", "x if y else ", ")",        "def ", "0 ",
        ";",   "f'{", "'''", "\\",     "lambda:", "@",   "\n ",          "if x:\n ", "\xff", "a,",
        "a\n", "\r",  "=",   "class\n"}) {
    std::string text = "x = ";
    while (text.size() < 20'000) text += piece;
    text += "1\n";
    const auto tree =
        Tree::Parse(Language::kPython, text, {.time = std::chrono::milliseconds(200)});
    if (!tree) {
      EXPECT_EQ(tree.error().reason, "syntax.timeout") << piece;
      continue;
    }
    std::size_t wrong = 0;
    for (const Node node : *tree) {
      const bool within = !node.parent() || node.begin() >= node.parent().begin();
      wrong += node.begin() <= node.end() && node.end() <= text.size() && within ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U) << piece;
  }
}

TEST(SyntaxTree, PiecesOfALongTextHaveOneRoot) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "x" + std::to_string(i) + " = f(1, 2)\n";
  const auto tree = Tree::Parse(Language::kPython, text);
  ASSERT_TRUE(tree);
  std::size_t statements = 0;
  for (Node node = tree->root().first_child(); node; node = node.next_sibling()) {
    ASSERT_EQ(node.text(), "x" + std::to_string(statements) + " = f(1, 2)");
    ASSERT_EQ(node.parent(), tree->root());
    ++statements;
  }
  EXPECT_EQ(statements, 10'000U);
  EXPECT_EQ(tree->root().end(), text.size());
}

// So that the second half of a long function, cut off, is still read.
TEST(SyntaxTree, AnIndentedTextIsStatementsToo) {
  const auto tree =
      Tree::Parse(Language::kPython, "    a = f(b=1)\n    if a:\n        g()\n    c = 2\n");
  ASSERT_TRUE(tree);
  std::size_t calls = 0;
  for (const Node node : *tree) {
    EXPECT_FALSE(node.is("ERROR")) << node.text();
    calls += node.is("call") ? 1 : 0;
  }
  EXPECT_EQ(calls, 2U);
}

TEST(SyntaxTree, BoundsAreKept) {
  const std::string text(1000, 'a');
  const auto large = Tree::Parse(Language::kPython, text, {.text_bytes = 999});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().reason, "syntax.too_large");
  const auto nodes = Tree::Parse(Language::kPython, "a, b, c, d\n", {.nodes = 5});
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().reason, "syntax.too_large");
  const auto slow = Tree::Parse(Language::kPython, text, {.time = std::chrono::microseconds(0)});
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().reason, "syntax.timeout");
}

}  // namespace
}  // namespace expanse::workload::syntax
