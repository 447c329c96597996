#include "daemon/spool/owners.h"

#include <gtest/gtest.h>

namespace expanse::daemon::spool {
namespace {

TEST(Owners, AreNamesOrNumbers) {
  EXPECT_EQ(*ParseOwners({"root", "65534"}), (std::vector<uid_t>{0, 65534}));
  EXPECT_TRUE(ParseOwners({})->empty());
  const auto bad = ParseOwners({"root", "nobody-of-this-name"});
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().reason, "spool.owner");
  EXPECT_FALSE(ParseOwners({"-1"}));
}

}  // namespace
}  // namespace expanse::daemon::spool
