#include "schedulers/slurm/commands/sacct_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/slurm/commands/sacct_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using testing::ElementsAre;

class SacctRowsTest : public testing::Test {
 protected:
  SacctRows Reader(std::size_t max_row = SacctRows::kMaxRow) {
    return SacctRows(
        SacctFormat::Full(), std::string(kTestSeparator),
        [this](const SacctRow& row) {
          ids_.emplace_back(row[SacctField::kJobIdRaw]);
          names_.emplace_back(row[SacctField::kJobName]);
          comments_.emplace_back(row[SacctField::kComment]);
        },
        max_row);
  }
  static std::string Line(std::string id, std::string name, std::string comment = "") {
    return SacctLine(SacctFormat::Full(), kTestSeparator,
                     {{SacctField::kJobIdRaw, std::move(id)},
                      {SacctField::kJobName, std::move(name)},
                      {SacctField::kComment, std::move(comment)}});
  }
  std::vector<std::string> ids_, names_, comments_;
};

TEST_F(SacctRowsTest, KeepsEveryByteOfWhatUsersWrite) {
  const std::vector<std::string> names = {"crazy|name",
                                          "\"half",
                                          "two\nlines\n\n",
                                          "tab\tand\rreturn",
                                          "\xff\xfe\x80raw",
                                          "emoji 🐌",
                                          "<b>&amp;</b>",
                                          std::string("\x1f", 1),
                                          "\x1fsEpArAtOr01",
                                          "\x1f\x1fsEp",
                                          "4712|4712|FAILED\n4713|x",
                                          ""};
  std::string text;
  for (const std::string& name : names) text += Line("1", name, name);
  SacctRows rows = Reader();
  rows.Feed(text);
  EXPECT_TRUE(rows.Finish());
  EXPECT_EQ(names_, names);
  EXPECT_EQ(comments_, names);
  EXPECT_EQ(rows.rows(), names.size());
}

TEST_F(SacctRowsTest, ReadsTheSameHoweverTheOutputIsCut) {
  const std::string text = Line("1", "a\nb", "\x1fsEp") + Line("2", "", "x|y") + Line("3", "last");
  for (std::size_t piece = 1; piece < text.size(); ++piece) {
    ids_.clear();
    names_.clear();
    SacctRows rows = Reader();
    for (std::size_t at = 0; at < text.size(); at += piece) rows.Feed(text.substr(at, piece));
    ASSERT_TRUE(rows.Finish()) << piece;
    ASSERT_THAT(ids_, ElementsAre("1", "2", "3")) << piece;
    ASSERT_THAT(names_, ElementsAre("a\nb", "", "last")) << piece;
  }
}

TEST_F(SacctRowsTest, SaysWhenTheLastRowIsTorn) {
  const std::string text = Line("1", "whole") + Line("2", "torn");
  for (std::size_t cut = 1; cut < 40; ++cut) {
    ids_.clear();
    SacctRows rows = Reader();
    rows.Feed(std::string_view(text).substr(0, text.size() - cut));
    EXPECT_FALSE(rows.Finish()) << cut;
    EXPECT_THAT(ids_, ElementsAre("1"));
  }
}

TEST_F(SacctRowsTest, LeavesOutARowThatIsTooLongAndGoesOn) {
  const std::string text = Line("1", "a") + Line("2", std::string(5000, 'x') + "\n") +
                           Line("3", "b") + Line("4", std::string(3000, '\x1f')) + Line("5", "c");
  for (const std::size_t piece : {1U, 7U, 100U, 64U << 10}) {
    ids_.clear();
    SacctRows rows = Reader(/*max_row=*/1000);
    for (std::size_t at = 0; at < text.size(); at += piece) rows.Feed(text.substr(at, piece));
    EXPECT_TRUE(rows.Finish());
    if (piece > 5000) {
      EXPECT_THAT(ids_, ElementsAre("1", "2", "3", "4", "5"));  // it was in memory anyway
    } else {
      EXPECT_THAT(ids_, ElementsAre("1", "3", "5")) << piece;
      EXPECT_EQ(rows.too_long(), 2U);
    }
  }
}

TEST_F(SacctRowsTest, FieldsThatTheVersionLacksAreEmpty) {
  const auto format = SacctFormat::FromHelp("JobIDRaw Submit State");
  ASSERT_TRUE(format);
  int seen = 0;
  SacctRows rows(*format, "|", [&](const SacctRow& row) {
    ++seen;
    EXPECT_EQ(row[SacctField::kState], "RUNNING");
    EXPECT_EQ(row[SacctField::kSubmitLine], "");
    EXPECT_EQ(row[SacctField::kJobIdRaw], "12");
  });
  rows.Feed("RUNNING|5|12\n");
  EXPECT_TRUE(rows.Finish());
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
