#include "workload/syntax/pieces.h"

#include <gtest/gtest.h>

#include <string>

namespace expanse::workload::syntax {
namespace {

std::vector<std::string> Cut(std::string_view text, std::size_t bytes) {
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  for (const std::size_t end : CutPython(text, bytes)) {
    EXPECT_TRUE(end > begin || text.empty());
    EXPECT_LE(end - begin, bytes);
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return pieces;
}

using Pieces = std::vector<std::string>;

TEST(CutPython, ShortTextIsOnePiece) {
  EXPECT_EQ(Cut("", 10), (Pieces{""}));
  EXPECT_EQ(Cut("a = 1\n", 10), (Pieces{"a = 1\n"}));
  EXPECT_EQ(Cut("0123456789", 10), (Pieces{"0123456789"}));
}

TEST(CutPython, CutsBeforeTheLeastIndentedStatement) {
  EXPECT_EQ(Cut("def f():\n  a\n  b\ndef g():\n  c\n", 25),
            (Pieces{"def f():\n  a\n  b\n", "def g():\n  c\n"}));
  // "else" begins no statement: before it the branch would lose its condition's end.
  EXPECT_EQ(Cut("if a:\n  bb\nelse:\n  c\n  d\n", 20),
            (Pieces{"if a:\n  bb\nelse:\n", "  c\n  d\n"}));
}

TEST(CutPython, NotWithinStringsAndBrackets) {
  EXPECT_EQ(Cut("a = '''\nb\nc\n'''\nd = 1\n", 20), (Pieces{"a = '''\nb\nc\n'''\n", "d = 1\n"}));
  EXPECT_EQ(Cut("a = [\n1,\n2\n]\nd = '['\ne = 2\n", 22),
            (Pieces{"a = [\n1,\n2\n]\nd = '['\n", "e = 2\n"}));
  EXPECT_EQ(Cut("# it's [\nb = 1\nc = 2\n", 15), (Pieces{"# it's [\nb = 1\n", "c = 2\n"}));
}

TEST(CutPython, AnywhereWhereThereIsNoBetterPlace) {
  EXPECT_EQ(Cut("aaaaaaaaaaaaaaaaaaaaaaaaa", 10), (Pieces{"aaaaaaaaaa", "aaaaaaaaaa", "aaaaa"}));
  EXPECT_EQ(Cut("(\n1,\n2,\n3,\n4,\n5\n", 8), (Pieces{"(\n1,\n2,\n", "3,\n4,\n5\n"}));
}

}  // namespace
}  // namespace expanse::workload::syntax
