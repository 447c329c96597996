#include "cli/planes.h"

#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kListRuns = "expanse.intelligence.v1.IntelligenceService.ListRuns";

base::Result<intelligence::v1::ListRunsResponse> ListRuns(CliHarness& harness) {
  EXPANSE_ASSIGN_OR_RETURN(auto planes, Planes::Open(harness.app));
  return planes.Intelligence<intelligence::v1::ListRunsResponse>(
      kListRuns, intelligence::v1::ListRunsRequest());
}

TEST(Planes, SaysWhereThereIsNoIntelligencePlane) {
  FakePlatform platform;
  platform.has_intelligence = false;
  CliHarness harness;
  harness.SignIn(platform);
  const auto none = ListRuns(harness);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, base::Code::kFailedPrecondition);
  EXPECT_EQ(none.error().reason, "session.no_intelligence_plane");
}

TEST(Planes, FindsAnIntelligencePlaneThatCameAfterTheSignIn) {
  FakePlatform platform;
  platform.has_intelligence = false;
  CliHarness harness;
  harness.SignIn(platform);
  platform.has_intelligence = true;
  const auto answer = ListRuns(harness);
  EXPECT_TRUE(answer || answer.error().reason != "session.no_intelligence_plane");
  EXPECT_EQ(Planes::Open(harness.app)->session().intelligence_plane_url, platform.url());
}

}  // namespace
}  // namespace expanse::cli
