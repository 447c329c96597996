#include "intelligence/runbook_service.h"

#include <gtest/gtest.h>

#include "intelligence/intelligence_testing.h"

namespace expanse::intelligence {
namespace {

TEST(RunbookService, ListsAllById) {
  RunbookService service(TestRunbooks());
  const auto listed = service.ListRunbooks(UserCall(), {});
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed->site_error(), "");
  ASSERT_EQ(static_cast<std::size_t>(listed->runbooks_size()),
            TestRunbooks().Current().set->runbooks().size());
  std::string last;
  for (const v1::RunbookSummary& runbook : listed->runbooks()) {
    EXPECT_LT(last, runbook.id());
    last = runbook.id();
    EXPECT_EQ(runbook.origin(), "embedded");
    EXPECT_NE(runbook.title(), "");
    if (runbook.id() != "host_out_of_memory") continue;
    EXPECT_EQ(runbook.kind(), "cause");
    EXPECT_EQ(runbook.owner(), "user");
    EXPECT_EQ(runbook.family(), "memory");
  }
}

TEST(RunbookService, ShowsOneAsItWasWritten) {
  RunbookService service(TestRunbooks());
  v1::GetRunbookRequest request;
  request.set_id("walltime_exceeded");
  const auto shown = service.GetRunbook(UserCall(), request);
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(shown->summary().id(), "walltime_exceeded");
  EXPECT_TRUE(shown->yaml().starts_with("- id: walltime_exceeded\n")) << shown->yaml();
  EXPECT_EQ(shown->yaml().find("- id: node_failure"), std::string::npos);
}

TEST(RunbookService, RefusesWhatThereIsNot) {
  RunbookService service(TestRunbooks());
  const auto reason = [&](const std::string& id) {
    v1::GetRunbookRequest request;
    request.set_id(id);
    const auto shown = service.GetRunbook(UserCall(), request);
    return shown ? "" : shown.error().reason;
  };
  EXPECT_EQ(reason(""), "runbook.id");
  EXPECT_EQ(reason(std::string(65, 'a')), "runbook.id");
  EXPECT_EQ(reason("no_such_class"), "runbook.not_found");
  net::CallContext compute = UserCall();
  compute.caller.kind = net::CallerKind::kCompute;
  EXPECT_EQ(service.ListRunbooks(compute, {}).error().code, base::Code::kPermissionDenied);
  EXPECT_EQ(service.GetRunbook(compute, {}).error().code, base::Code::kPermissionDenied);
}

}  // namespace
}  // namespace expanse::intelligence
