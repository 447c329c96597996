#include "schedulers/slurm/commands/sacct_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "schedulers/slurm/commands/fake_runner_testing.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// What sacct 22.05 lists, in columns; without Restarts, SLUID, StdOut and StdErr.
constexpr std::string_view kHelp2205 = R"(
Account             AdminComment        AllocCPUS           AllocNodes
AllocTRES           AssocID             AveRSS              Cluster
Comment             Constraints         ConsumedEnergyRaw   Container
DBIndex             DerivedExitCode     ElapsedRaw          Eligible
End                 ExitCode            Flags               GID
JobID               JobIDRaw            JobName             MaxRSS
NNodes              NodeList            NTasks              Partition
QOS                 Reason              ReqCPUS             ReqMem
ReqNodes            ReqTRES             Reservation         Start
State               Submit              SubmitLine          Suspended
SystemCPU           TimelimitRaw        TotalCPU            TRESUsageInAve
TRESUsageInTot      TRESUsageOutTot     UID                 User
UserCPU             WCKey               WCKeyID             WorkDir
)";

TEST(SacctFormat, AsksOnlyForWhatTheVersionKnows) {
  const auto format = SacctFormat::FromHelp(kHelp2205);
  ASSERT_TRUE(format);
  EXPECT_FALSE(format->Has(SacctField::kRestarts));
  EXPECT_FALSE(format->Has(SacctField::kSluid));
  EXPECT_FALSE(format->Has(SacctField::kFailedNode));
  EXPECT_TRUE(format->Has(SacctField::kSubmitLine));
  EXPECT_THAT("," + format->Argument() + ",",
              AllOf(HasSubstr(",TRESUsageInTot,"), HasSubstr(",WCKey,"), Not(HasSubstr("SLUID"))));
  EXPECT_EQ(format->columns().size(), format->ColumnOf(SacctField::kJobIdRaw) + 1);
}

TEST(SacctFormat, EndsWithTheFieldThatHoldsNoNewline) {
  EXPECT_EQ(SacctFormat::Full().columns().back(), SacctField::kJobIdRaw);
  EXPECT_EQ(SacctFormat::Full().columns().size(), kSacctFields);
  EXPECT_TRUE(SacctFormat::Full().Argument().ends_with(",JobIDRaw"));
}

TEST(SacctFormat, RefusesAVersionThatCannotTellRunsApart) {
  const auto format = SacctFormat::FromHelp("JobID JobIDRaw State Start End");
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().reason, "slurm.sacct_format");
  EXPECT_THAT(format.error().message, HasSubstr("Submit"));
}

TEST(SacctFormat, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const SacctField field : SacctFormat::Full().columns())
    EXPECT_TRUE(names.insert(Name(field)).second) << Name(field);
}

TEST(SacctArguments, OfAWindowAreInUtcAndForEndedRunsOnly) {
  const auto arguments = SacctArguments(
      SacctFormat::Full(), "SEP",
      SacctWindow{base::WallTime(1'790'000'000s), base::WallTime(1'790'000'059s + 999ms)});
  EXPECT_THAT(arguments, Contains("--starttime=2026-09-21T14:13:20"));
  EXPECT_THAT(arguments, Contains("--endtime=2026-09-21T14:14:19"));
  EXPECT_THAT(arguments, Contains("--delimiter=SEP"));
  for (const char* needed :
       {"--allusers", "--duplicates", "--local", "--noheader", "--parsable2", "--noconvert"}) {
    EXPECT_THAT(arguments, Contains(needed));
  }
  EXPECT_THAT(arguments, Contains(AllOf(HasSubstr("--state="), HasSubstr("OOM"), HasSubstr("RQ"),
                                        Not(HasSubstr("PD")))));
}

TEST(SacctArguments, OfJobsNameThemAll) {
  const auto arguments =
      SacctArguments(SacctFormat::Full(), "SEP",
                     SacctJobs{.ids = {7, 4'294'967'293U}, .since = base::WallTime(86'400s)});
  EXPECT_THAT(arguments, Contains("--jobs=7,4294967293"));
  EXPECT_THAT(arguments, Contains("--starttime=1970-01-02T00:00:00"));
  EXPECT_THAT(arguments, Contains("--duplicates"));
  EXPECT_THAT(arguments, Not(Contains(HasSubstr("--state"))));
}

TEST(SacctSeparator, IsNewEachTimeAndNothingThatPeopleWrite) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string separator = NewSacctSeparator();
    EXPECT_EQ(separator.size(), 13U);
    EXPECT_EQ(separator[0], '\x1f');
    EXPECT_TRUE(seen.insert(separator).second);
  }
}

TEST(AskSacctFormat, PassesOnWhyThereIsNone) {
  FakeRunner runner;
  runner.On(Program::kSacct, [](const std::vector<std::string>&) {
    return FakeRunner::Answer{
        .out = {},
        .status = base::Fail(base::Code::kFailedPrecondition, "slurm.no_accounting", "none kept")};
  });
  const auto none = AskSacctFormat(runner, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason, "slurm.no_accounting");
  runner.On(Program::kSacct, [](const std::vector<std::string>& arguments) {
    EXPECT_THAT(arguments, testing::ElementsAre("--helpformat"));
    return FakeRunner::Answer{.out = std::string(kHelp2205), .status = {}};
  });
  EXPECT_TRUE(AskSacctFormat(runner, {}));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
