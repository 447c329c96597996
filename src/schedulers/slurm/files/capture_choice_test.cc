#include "schedulers/slurm/files/capture_choice.h"

#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

using Notes = std::vector<std::string>;

TEST(CaptureChoice, TakesAllUnlessSomebodySaysNo) {
  const CaptureChoice choice = ChooseCapture({}, "ada", "physics", "nightly run");
  EXPECT_TRUE(choice.logs);
  EXPECT_TRUE(choice.sources);
  EXPECT_TRUE(choice.notes.empty());
}

TEST(CaptureChoice, HearsTheJob) {
  EXPECT_EQ(ChooseCapture({}, "ada", "", "expanse=off").notes,
            (Notes{"logs: off for this job", "sources: off for this job"}));
  const CaptureChoice logs = ChooseCapture({}, "ada", "", "sweep 3,expanse=nologs;x");
  EXPECT_FALSE(logs.logs);
  EXPECT_TRUE(logs.sources);
  const CaptureChoice sources = ChooseCapture({}, "ada", "", "a\texpanse=nosources\nb");
  EXPECT_TRUE(sources.logs);
  EXPECT_FALSE(sources.sources);
  EXPECT_EQ(sources.notes, (Notes{"sources: off for this job"}));
}

TEST(CaptureChoice, WantsTheWholeWord) {
  for (const char* comment : {"expanse=offline", "notexpanse=off", "expanse= off", "EXPANSE=OFF",
                              "expanse=on", "", ",,;"}) {
    EXPECT_TRUE(ChooseCapture({}, "ada", "", comment).logs) << comment;
  }
  EXPECT_FALSE(ChooseCapture({}, "ada", "", "expanse=offline expanse=off").logs);
}

TEST(CaptureChoice, ExcludesAccountsAndUsers) {
  CaptureSwitches switches;
  switches.exclude_accounts = {"clinic"};
  switches.exclude_users = {"eve"};
  EXPECT_EQ(ChooseCapture(switches, "ada", "clinic", "").notes.front(),
            "logs: off for this account");
  EXPECT_EQ(ChooseCapture(switches, "eve", "physics", "").notes.back(),
            "sources: off for this user");
  EXPECT_TRUE(ChooseCapture(switches, "ada", "clinical", "").notes.empty());
  EXPECT_TRUE(ChooseCapture(switches, "", "", "").notes.empty());
}

TEST(CaptureChoice, NothingTurnsOnWhatTheComputeTurnedOff) {
  CaptureSwitches switches;
  switches.logs = false;
  const CaptureChoice choice = ChooseCapture(switches, "ada", "", "expanse=on expanse=logs");
  EXPECT_FALSE(choice.logs);
  EXPECT_TRUE(choice.sources);
  EXPECT_EQ(choice.notes, (Notes{"logs: off for this compute"}));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
