#include "workload/kubernetes/quantity.h"

#include <gtest/gtest.h>

namespace expanse::workload::kubernetes {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST(Quantity, ReadsEverySuffix) {
  EXPECT_EQ(ParseQuantity("0"), 0);
  EXPECT_EQ(ParseQuantity("16Gi"), 16 * kGiB);
  EXPECT_EQ(ParseQuantity("1.5Gi"), 1.5 * kGiB);
  EXPECT_EQ(ParseQuantity("1Ki"), 1024);
  EXPECT_EQ(ParseQuantity("1Ei"), 0x1p60);
  EXPECT_EQ(ParseQuantity("2M"), 2e6);
  EXPECT_EQ(ParseQuantity("1E"), 1e18);
  EXPECT_EQ(ParseQuantity("1e3"), 1000);
  EXPECT_EQ(ParseQuantity("1E3"), 1000);
  EXPECT_EQ(ParseQuantity("1e+3"), 1000);
  EXPECT_DOUBLE_EQ(*ParseQuantity("12e-1"), 1.2);
  EXPECT_DOUBLE_EQ(*ParseQuantity("250m"), 0.25);
  EXPECT_EQ(ParseQuantity(".5"), 0.5);
  EXPECT_EQ(ParseQuantity("5."), 5);
  EXPECT_EQ(ParseQuantity("+5"), 5);
}

TEST(Quantity, RefusesWhatIsNone) {
  for (std::string_view text : {"", ".", "-1", "16GB", "16gi", "1 Gi", "Gi", "1e", "1e99", "1K",
                                "0x10", "1.2.3", "nan", "inf", "++1", "1e1.5"})
    EXPECT_FALSE(ParseQuantity(text).has_value()) << text;
  EXPECT_FALSE(ParseQuantity(std::string(400, '9')).has_value());
}

TEST(Quantity, KeepsTheSpelling) {
  EXPECT_EQ(FormatQuantity(15 * kGiB, "16Gi"), "15Gi");
  EXPECT_EQ(FormatQuantity(1.5 * kGiB, "16Gi"), "1536Mi");
  EXPECT_EQ(FormatQuantity(1.5 * kGiB, "2.5Gi"), "1.5Gi");
  EXPECT_EQ(FormatQuantity(1.25 * kGiB, "2.5Gi"), "1.25Gi");
  EXPECT_EQ(FormatQuantity(16e9, "32G"), "16G");
  EXPECT_EQ(FormatQuantity(15 * kGiB, "16G"), "16107M");
  EXPECT_EQ(FormatQuantity(3 * kGiB, "4294967296"), "3221225472");
  EXPECT_EQ(FormatQuantity(3 * kGiB, "4e9"), "3221225472");
  EXPECT_EQ(FormatQuantity(3 * kGiB, "128974848000m"), "3221225472");
  EXPECT_EQ(FormatQuantity(1.5, "2000m"), "1500m");
  EXPECT_EQ(FormatQuantity(1.5, "2"), "1.5");
  EXPECT_EQ(FormatQuantity(0.1, "1"), "0.1");
  EXPECT_EQ(FormatQuantity(3, "0.5"), "3");
  EXPECT_EQ(FormatQuantity(17179869184, "1"), "17179869184");
}

TEST(Quantity, RoundsUpByLessThanAHundredth) {
  for (std::string_view like : {"1Ki", "1Mi", "1Gi", "1Ti", "1k", "1M", "1G", "1T", "1", "1.5Gi"}) {
    for (double amount = 1e6; amount < 1e15; amount *= 1.37) {
      const auto again = ParseQuantity(FormatQuantity(amount, like));
      ASSERT_TRUE(again.has_value()) << amount << like;
      EXPECT_GE(*again, amount * (1 - 1e-12)) << like;
      EXPECT_LE(*again, amount * 1.01 + 1) << like;
    }
  }
}

}  // namespace
}  // namespace expanse::workload::kubernetes
