#include "schedulers/slurm/text/version.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

TEST(SlurmVersion, ReadsWhatProgramsPrint) {
  EXPECT_EQ(ParseVersion("slurm 22.05.8\n"), (Version{22, 5, 8}));
  EXPECT_EQ(ParseVersion("slurm-wlm 22.05.8"), (Version{22, 5, 8}));
  EXPECT_EQ(ParseVersion("slurm 26.05.0-0rc1"), (Version{26, 5, 0}));
  EXPECT_EQ(ParseVersion("24.11"), (Version{24, 11, 0}));
  for (const char* text :
       {"", "slurm", "slurm 22", "slurm 22.x.1", "slurm 1.2.3.4", "slurm 22..5"}) {
    EXPECT_EQ(ParseVersion(text), std::nullopt) << text;
  }
}

TEST(SlurmVersion, IsOrderedByTime) {
  EXPECT_LT((Version{20, 11, 9}), (Version{21, 8, 0}));
  EXPECT_LT((Version{26, 5, 0}), (Version{26, 11, 0}));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
