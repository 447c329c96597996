#include "intelligence/diagnose/ledger.h"

#include <gtest/gtest.h>

namespace expanse::intelligence::diagnose {
namespace {

TEST(Ledger, GivesIdsInOrder) {
  Ledger ledger;
  EXPECT_EQ(ledger.Add({.text = "a"}), 0U);
  EXPECT_EQ(ledger.Add({.text = "b"}), 1U);
  EXPECT_EQ(ledger[0].id, "E1");
  EXPECT_EQ(ledger[1].id, "E2");
  EXPECT_EQ(ledger.items().size(), 2U);
}

TEST(Ledger, CutsLongTextAndKeepsTheBytes) {
  Ledger ledger;
  ledger.Add({.text = std::string(3000, '\xff')});
  EXPECT_EQ(ledger[0].text, std::string(kMaxItemText, '\xff'));
}

TEST(Ledger, HoldsOnlyWhatIsThere) {
  Ledger ledger;
  ledger.Add({.text = "error: out of memory"});
  EXPECT_TRUE(ledger.Holds("out of memory"));
  EXPECT_FALSE(ledger.Holds("Out of memory"));
  EXPECT_FALSE(ledger.Holds("error: out of memory."));
}

TEST(Ledger, IsBounded) {
  Ledger ledger;
  for (std::size_t i = 0; i < Ledger::kMaxItems; ++i) ASSERT_TRUE(ledger.Add({.text = "x"}));
  EXPECT_FALSE(ledger.Add({.text = "y"}));
  EXPECT_EQ(ledger.items().size(), Ledger::kMaxItems);
  EXPECT_FALSE(ledger.Holds("y"));
}

TEST(Origin, HasNames) {
  EXPECT_EQ(Name(Origin::kText), "log");
  EXPECT_EQ(Name(Origin::kSimilar), "similar");
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
