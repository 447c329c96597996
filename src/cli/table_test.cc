#include "cli/table.h"

#include <gtest/gtest.h>

namespace expanse::cli {
namespace {

Table Sample() {
  Table table({{.header = "ID"},
               {.header = "NAME", .least = 5},
               {.header = "N", .align = Align::kRight},
               {.header = "LINK", .optional = true}});
  table.Add({"a1", "a rather long name", "7", "https://x.test/a1"});
  table.Add({"b2", "", "1234", ""});
  return table;
}

TEST(Table, AlignsColumnsAndMarksEmptyCells) {
  EXPECT_EQ(Sample().Render({}),
            "ID  NAME                   N  LINK\n"
            "a1  a rather long name     7  https://x.test/a1\n"
            "b2  -                   1234  -\n");
}

TEST(Table, CutsWhatMayShrinkToFitTheTerminal) {
  EXPECT_EQ(Sample().Render({.width = 40}),
            "ID  NAME            N  LINK\n"
            "a1  a rather l…     7  https://x.test/a1\n"
            "b2  -            1234  -\n");
}

TEST(Table, LeavesOutOptionalColumnsWhenNothingElseHelps) {
  EXPECT_EQ(Sample().Render({.width = 20}),
            "ID  NAME      N\n"
            "a1  a ra…     7\n"
            "b2  -      1234\n");
}

TEST(Table, EscapesControlCharactersAndInvalidUtf8) {
  Table table({{.header = "NAME"}, {.header = "NEXT"}});
  table.Add({"bad\x1b[2J\n\xff", "x"});
  table.Add({"日本", "y"});
  EXPECT_EQ(table.Render({}),
            "NAME              NEXT\n"
            "bad\\x1b[2J\\n\\xff  x\n"
            "日本              y\n");
}

TEST(Table, ColoursOnlyWhenTold) {
  Table table({{.header = "STATUS"}, {.header = "X"}});
  table.Add({Cell("failed", Tint::kBad), "1"});
  EXPECT_EQ(table.Render({.colour = true}), "STATUS  X\n\x1b[31mfailed\x1b[0m  1\n");
  EXPECT_EQ(table.Render({.colour = false}), "STATUS  X\nfailed  1\n");
}

TEST(Table, FieldsAreLeftOutWhenUnknown) {
  EXPECT_EQ(RenderFields({{"NAME", "x"}, {"UNKNOWN", ""}, {"LONG LABEL", "y\tz"}}, {}),
            "NAME        x\nLONG LABEL  y\\tz\n");
}

TEST(Table, SentencesAreFilledOnATerminalOnly) {
  const std::vector<Field> fields = {
      {"ROOT", "one two  three four five six seven eight nine ten", /*sentences=*/true},
      {"COMMAND", "a command that is far longer than the terminal is wide"}};
  EXPECT_EQ(RenderFields(fields, {.width = 40}),
            "ROOT     one two  three four five six\n"
            "         seven eight nine ten\n"
            "COMMAND  a command that is far longer than the terminal is wide\n");
  EXPECT_EQ(RenderFields(fields, {.width = 0}),
            "ROOT     one two  three four five six seven eight nine ten\n"
            "COMMAND  a command that is far longer than the terminal is wide\n");
  EXPECT_EQ(RenderFields(fields, {.width = 20}), RenderFields(fields, {.width = 0}))
      << "too narrow to be of use";
  const std::string word(60, 'x');
  EXPECT_EQ(RenderFields({{"A", word + " b", /*sentences=*/true}}, {.width = 40}),
            "A  " + word + "\n   b\n");
}

TEST(CutToWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(CutToWidth("日本語", 6), "日本語");
  EXPECT_EQ(CutToWidth("日本語", 5), "日本…");
  EXPECT_EQ(CutToWidth("日本語", 4), "日…");
  EXPECT_EQ(CutToWidth("abc", 1), "…");
}

}  // namespace
}  // namespace expanse::cli
