#include "base/text.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace expanse::base {
namespace {

using Pieces = std::vector<std::string_view>;

TEST(Text, TrimsAndSplits) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trim(" \n "), "");
  EXPECT_EQ(Split("a,,b,", ','), (Pieces{"a", "", "b", ""}));
  EXPECT_EQ(Split("", ','), Pieces{""});
  EXPECT_EQ(SplitSpaces("  a \t b\n"), (Pieces{"a", "b"}));
  EXPECT_TRUE(SplitSpaces(" ").empty());
  EXPECT_EQ(ToLower("AbÄ"), "abÄ");
}

TEST(Text, ParsesWholeNumbersOnly) {
  EXPECT_EQ(ParseInt<int>("-12"), -12);
  for (const char* text : {"", "-", "+1", " 1", "1 ", "1x", "0x1", "99999999999999999999"}) {
    EXPECT_FALSE(ParseInt<std::int64_t>(text)) << text;
  }
  EXPECT_FALSE(ParseInt<unsigned>("-1"));
  EXPECT_EQ(ParseDouble("1.5e3"), 1500);
  EXPECT_FALSE(ParseDouble("1.5x"));
  EXPECT_FALSE(ParseDouble(""));
  EXPECT_EQ(ParseUnsignedDigits("000123"), 123U);
  EXPECT_EQ(ParseUnsignedDigits("999999999999999999"), 999999999999999999U);
  EXPECT_FALSE(ParseUnsignedDigits("1000000000000000000"));
  EXPECT_FALSE(ParseUnsignedDigits("-1"));
}

TEST(Utf8, AcceptsWellFormedTextOnly) {
  for (const char* text :
       {"", "abc", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
    EXPECT_EQ(ToValidUtf8(text), text);
  }
  // Lone continuation, overlong forms, surrogate, beyond the range, cut short, never used.
  for (const char* text :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80",
        "\xF4\x90\x80\x80", "\xE2\x82", "\xF8\x88\x80\x80\x80", "a\xFF"}) {
    EXPECT_FALSE(IsValidUtf8(text));
    EXPECT_TRUE(IsValidUtf8(ToValidUtf8(text)));
  }
  EXPECT_EQ(ToValidUtf8("a\xE2\x82z"), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(Text, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(EscapeForDisplay("a\nb\tc\r\x1B[31m\x7F"), "a\\nb\\tc\\r\\x1b[31m\\x7f");
  EXPECT_EQ(EscapeForDisplay("\xC2\x9B"), "\\u009b") << "C1 control";
  EXPECT_EQ(EscapeForDisplay("\xE2\x80\xAE"), "\\u202e") << "right-to-left override";
  EXPECT_EQ(EscapeForDisplay("\xE2\x80\xA8"), "\\u2028");
  EXPECT_EQ(EscapeForDisplay("\xFF\xC3\xA9"), "\\xff\xC3\xA9");
  EXPECT_EQ(EscapeForDisplay(std::string_view("\0", 1)), "\\x00");
}

TEST(Text, KnowsHowWideTextIs) {
  EXPECT_EQ(DisplayWidth("abc"), 3U);
  EXPECT_EQ(DisplayWidth("\xC3\xA9"), 1U);
  EXPECT_EQ(DisplayWidth("\xE6\x97\xA5"), 2U);
  EXPECT_EQ(DisplayWidth("\xF0\x9F\x98\x80"), 2U);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1U) << "combining accent";
  EXPECT_EQ(DisplayWidth("\xFF"), 1U);
}

TEST(Text, FindsTheNearestWord) {
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("ab", "ba"), 1U);
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(NearestWord("metrcis", {"login", "metrics"}), "metrics");
  EXPECT_FALSE(NearestWord("zzzzzz", {"login", "metrics"}));
  EXPECT_FALSE(NearestWord("x", {"ab"})) << "a word that would be replaced as a whole is not near";
}

TEST(Bytes, ReadsWhatSchedulersWrite) {
  EXPECT_EQ(ParseBytes("16G"), GiB(16));
  EXPECT_EQ(ParseBytes("16GiB"), GiB(16));
  EXPECT_EQ(ParseBytes("16 gb"), GiB(16));
  EXPECT_EQ(ParseBytes("1.5T"), GiB(1536));
  EXPECT_EQ(ParseBytes("512m"), MiB(512));
  EXPECT_EQ(ParseBytes("10K"), KiB(10));
  EXPECT_EQ(ParseBytes("4096"), Bytes{4096});
  EXPECT_EQ(ParseBytes("0"), Bytes{0});
  for (const char* text : {"", "G", "-1G", "1X", "1GG", "1e9", "nan", "1 2", "1.5.2K", "1KiBs"}) {
    ASSERT_FALSE(ParseBytes(text)) << text;
    EXPECT_EQ(ParseBytes(text).error().reason, "bytes.syntax") << text;
  }
  EXPECT_EQ(ParseBytes("9E").error().reason, "bytes.range");
  EXPECT_EQ(ParseBytes("inf").error().reason, "bytes.range");
}

TEST(Bytes, FormatsForPeople) {
  EXPECT_EQ(FormatBytes(Bytes{0}), "0 B");
  EXPECT_EQ(FormatBytes(Bytes{1023}), "1023 B");
  EXPECT_EQ(FormatBytes(KiB(1)), "1 KiB");
  EXPECT_EQ(FormatBytes(MiB(1536)), "1.5 GiB");
  EXPECT_EQ(FormatBytes(MiB(300)), "300 MiB");
  EXPECT_EQ(FormatBytes(Bytes{1048575}), "1 MiB") << "not 1024 KiB";
  EXPECT_EQ(FormatBytes(Bytes{UINT64_MAX}), "16 EiB");
}

}  // namespace
}  // namespace expanse::base
