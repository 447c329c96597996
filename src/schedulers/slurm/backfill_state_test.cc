#include "schedulers/slurm/backfill_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TimeSpan Span(int from, int to) {
  return {base::WallTime(std::chrono::seconds(from)), base::WallTime(std::chrono::seconds(to))};
}

TEST(CoveredTime, UnitesSpansThatTouch) {
  CoveredTime covered;
  covered.Add(Span(10, 20));
  covered.Add(Span(40, 50));
  covered.Add(Span(30, 30));  // nothing
  EXPECT_THAT(covered.spans(), ElementsAre(Span(10, 20), Span(40, 50)));
  covered.Add(Span(20, 30));
  EXPECT_THAT(covered.spans(), ElementsAre(Span(10, 30), Span(40, 50)));
  covered.Add(Span(0, 5));
  covered.Add(Span(25, 60));
  EXPECT_THAT(covered.spans(), ElementsAre(Span(0, 5), Span(10, 60)));
}

TEST(CoveredTime, TellsWhatIsMissing) {
  CoveredTime covered;
  EXPECT_THAT(covered.GapsIn(Span(0, 100)), ElementsAre(Span(0, 100)));
  covered.Add(Span(20, 30));
  covered.Add(Span(60, 70));
  EXPECT_THAT(covered.GapsIn(Span(0, 100)), ElementsAre(Span(0, 20), Span(30, 60), Span(70, 100)));
  EXPECT_THAT(covered.GapsIn(Span(25, 65)), ElementsAre(Span(30, 60)));
  EXPECT_THAT(covered.GapsIn(Span(22, 28)), IsEmpty());
  EXPECT_THAT(covered.GapsIn(Span(70, 70)), IsEmpty());
}

class BackfillStateTest : public testing::Test {
 protected:
  base::TempDir directory_ = base::TempDir::Create().value();
  std::string path_ = base::JoinPath(directory_.path(), "resume.json");
};

TEST_F(BackfillStateTest, ComesBackAsItWas) {
  CoveredTime covered;
  covered.Add(Span(1'790'000'000, 1'790'086'400));
  covered.Add(Span(5, 6));
  ASSERT_TRUE(SaveCoveredTime(path_, "aurora", covered));
  EXPECT_EQ(LoadCoveredTime(path_, "aurora")->spans(), covered.spans());
  EXPECT_THAT(LoadCoveredTime(path_, "borealis")->spans(), IsEmpty());
}

TEST_F(BackfillStateTest, MissingAndDamagedFilesCoverNothing) {
  EXPECT_THAT(LoadCoveredTime(path_, "a")->spans(), IsEmpty());
  for (const char* text :
       {"", "{", "[]", R"({"version":2,"cluster":"a","done":[[1,2]]})",
        R"({"version":1,"cluster":"a"})", R"({"version":1,"cluster":"a","done":[[1]]})",
        R"({"version":1,"cluster":"a","done":[[1,"2"]]})",
        R"({"version":1,"cluster":"a","done":[[-1,99999999999999999]]})"}) {
    ASSERT_TRUE(base::WriteFileAtomically(path_, text, 0600));
    const auto covered = LoadCoveredTime(path_, "a");
    ASSERT_TRUE(covered) << text;
    EXPECT_THAT(covered->spans(), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace expanse::schedulers::slurm
