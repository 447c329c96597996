#include "workload/submission.h"

#include <gtest/gtest.h>

namespace expanse::workload {
namespace {

TEST(LineAt, IsTheLineThatHoldsTheByte) {
  constexpr std::string_view kText = "first\n\nlast";
  EXPECT_EQ(LineAt(kText, 0), "first");
  EXPECT_EQ(LineAt(kText, 5), "first") << "its end belongs to it";
  EXPECT_EQ(LineAt(kText, 6), "");
  EXPECT_EQ(LineAt(kText, 7), "last");
  EXPECT_EQ(LineAt(kText, 100), "last");
  EXPECT_EQ(LineAt("", 0), "");
}

TEST(PlaceOf, CountsLinesAndColumnsFromOne) {
  EXPECT_EQ(PlaceOf("ab\ncd", 4, 5), (Place{.begin = 4, .end = 5, .line = 2, .column = 2}));
  EXPECT_EQ(PlaceOf("ab", 9, 1), (Place{.begin = 2, .end = 2, .line = 1, .column = 3}));
}

}  // namespace
}  // namespace expanse::workload
