#include "intelligence/intelligence_plane.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/intelligence_testing.h"
#include "net/connect_server.h"
#include "net/net_testing.h"
#include "store/runs/memory_run_store_testing.h"

namespace expanse::intelligence {
namespace {

namespace pb = google::protobuf;

// A whole plane behind the router, with a caller of every kind.
class IntelligencePlaneTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = IntelligencePlane::Create({}, runs_, {analyser_, diagnoser_, TestRunbooks()},
                                             clock_, metrics_);
    ASSERT_TRUE(created);
    plane_ = std::move(*created);
    plane_->AddMethods(router_);
    ASSERT_TRUE(plane_->Start());
    const std::vector<std::string> member = {"intelligence.use", "executions.read"};
    AddCaller("member", net::CallerKind::kUser, "user-1", "org-1", member);
    AddCaller("colleague", net::CallerKind::kUser, "user-2", "org-1", member);
    AddCaller("reads-all", net::CallerKind::kUser, "user-3", "org-1",
              {"intelligence.use", "executions.read_all"});
    AddCaller("member-without", net::CallerKind::kUser, "user-4", "org-1", {"executions.read"});
    AddCaller("stranger", net::CallerKind::kUser, "user-5", "org-2",
              {"intelligence.use", "executions.read", "executions.read_all"});
    AddCaller("compute", net::CallerKind::kCompute, "compute-a", "org-1", {"intelligence.use"});
    AddCaller("plane", net::CallerKind::kPlane, "data", "", {"intelligence.use"});
  }
  void TearDown() override { plane_->Stop(); }

  void AddCaller(const std::string& token, net::CallerKind kind, std::string subject,
                 std::string organisation, std::vector<std::string> permissions) {
    authenticator_.Add(token, {.kind = kind,
                               .subject = std::move(subject),
                               .organisation_id = std::move(organisation),
                               .session_id = "s",
                               .permissions = std::move(permissions),
                               .expires_at = clock_.Now() + std::chrono::seconds(600)});
  }
  net::HttpResponse Json(const std::string& method, const std::string& token, std::string body) {
    net::HttpRequest request;
    request.method = "POST";
    request.path = "/expanse.intelligence.v1.IntelligenceService/" + method;
    request.headers.Add("Content-Type", "application/json");
    if (!token.empty()) request.headers.Add("Authorization", "Bearer " + token);
    request.body = std::move(body);
    request.peer = "127.0.0.1:1";
    request.request_id = "r";
    request.received = std::chrono::steady_clock::now();
    return router_.Handle(request);
  }
  // "ok", or the code of the error.
  static std::string Outcome(const net::HttpResponse& response) {
    return response.status == 200 ? "ok" : Field(response, "code");
  }
  static std::string Field(const net::HttpResponse& response, const std::string& name) {
    const std::string key = "\"" + name + "\":\"";
    const std::size_t at = response.body.find(key);
    if (at == std::string::npos) return response.body;
    const std::size_t start = at + key.size();
    return response.body.substr(start, response.body.find('"', start) - start);
  }

  base::FakeClock clock_;
  base::MetricRegistry metrics_;
  store::MemoryRunStore runs_;
  FakeAnalyser analyser_;
  FakeDiagnoser diagnoser_;
  net::FakeAuthenticator authenticator_;
  net::ConnectRouter router_{{}, authenticator_, metrics_};
  std::unique_ptr<IntelligencePlane> plane_;
};

const std::string kAsk = R"({"target": {"path": "job.sh", "data": "aGk="}})";

TEST_F(IntelligencePlaneTest, AnswersEveryCallerOfEveryMethodAsTheTableSays) {
  const auto asked = Json("Analyse", "member", kAsk);
  ASSERT_EQ(asked.status, 200) << asked.body;
  const std::string run = R"({"run_id": ")" + Field(asked, "run_id") + R"("})";
  const std::string artifact = R"({"artifact_id": ")" + Field(asked, "artifact_id") + R"("})";
  // What those say who may ask, but not see what is another's.
  const auto row = [](const std::string& colleague, const std::string& stranger) {
    return std::map<std::string, std::string>{{"", "unauthenticated"},
                                              {"forged", "unauthenticated"},
                                              {"member", "ok"},
                                              {"colleague", colleague},
                                              {"reads-all", "ok"},
                                              {"member-without", "permission_denied"},
                                              {"stranger", stranger},
                                              {"compute", "permission_denied"},
                                              {"plane", "permission_denied"}};
  };
  // Executions are the organisation's.
  const std::string diagnose =
      std::string(R"({"execution_id": ")") + FakeDiagnoser::kExecution + R"("})";
  const auto diagnosed = row("ok", "not_found");
  const std::string classes =
      std::string(R"({"execution_ids": [")") + FakeDiagnoser::kExecution + R"("]})";
  struct Row {
    std::string body;
    std::map<std::string, std::string> answers;
  };
  const std::map<std::string, Row> table = {
      {"Analyse", {kAsk, row("ok", "ok")}},
      {"Diagnose", {diagnose, diagnosed}},
      {"ListFailureClasses", {classes, row("ok", "ok")}},
      {"ListRunbooks", {"{}", row("ok", "ok")}},
      {"GetRunbook", {R"({"id": "host_out_of_memory"})", row("ok", "ok")}},
      {"GetRun", {run, row("not_found", "not_found")}},
      {"ListRuns", {"{}", row("ok", "ok")}},
      {"GetArtifact", {artifact, row("not_found", "not_found")}}};
  const pb::ServiceDescriptor* service = v1::AnalyseRequest::descriptor()->file()->service(0);
  ASSERT_EQ(static_cast<int>(table.size()), service->method_count());
  for (int m = 0; m < service->method_count(); ++m) {
    const std::string& method = service->method(m)->name();
    ASSERT_TRUE(table.contains(method)) << method;
    const Row& expected = table.at(method);
    for (const auto& [caller, answer] : expected.answers) {
      const auto response = Json(method, caller, expected.body);
      EXPECT_EQ(Outcome(response), answer) << method << " by '" << caller << "': " << response.body;
    }
  }
}

TEST_F(IntelligencePlaneTest, ListsOnesOwnRunsAndThoseOfAllWhereThatMaySeen) {
  ASSERT_EQ(Outcome(Json("Analyse", "member", kAsk)), "ok");
  EXPECT_EQ(Json("ListRuns", "colleague", "{}").body, "{}");
  EXPECT_EQ(Json("ListRuns", "stranger", R"({"all_users": true})").body, "{}");
  EXPECT_EQ(Json("ListRuns", "reads-all", "{}").body, "{}");
  EXPECT_EQ(Field(Json("ListRuns", "reads-all", R"({"all_users": true})"), "user_id"), "user-1");
  EXPECT_EQ(Field(Json("ListRuns", "member", "{}"), "target"), "job.sh");
  const auto refused = Json("ListRuns", "member", R"({"all_users": true})");
  EXPECT_EQ(Outcome(refused), "permission_denied");
}

TEST_F(IntelligencePlaneTest, RefusesWhatIsNoRequest) {
  for (const std::string& body :
       {std::string("{}"), std::string("{"), std::string(R"({"target": {"path": ""}})")})
    EXPECT_EQ(Outcome(Json("Analyse", "member", body)), "invalid_argument") << body;
  EXPECT_EQ(Outcome(Json("GetRun", "member", R"({"run_id": "7"})")), "invalid_argument");
  EXPECT_EQ(Outcome(Json("GetArtifact", "member", "{}")), "invalid_argument");
  EXPECT_EQ(Outcome(Json("ListRuns", "member", R"({"page_size": 1001})")), "invalid_argument");
  EXPECT_EQ(Outcome(Json("ListRuns", "member", R"({"page_token": "x"})")), "invalid_argument");
  EXPECT_EQ(Outcome(Json("ListRuns", "member", R"({"kind": 77})")), "invalid_argument");
}

TEST_F(IntelligencePlaneTest, CountsItsRuns) {
  (void)Json("Analyse", "member", kAsk);
  (void)Json("Analyse", "member", "{}");
  const std::string text = metrics_.Render();
  EXPECT_NE(text.find(R"(expanse_runs_total{kind="analyse",status="succeeded"} 1)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(expanse_runs_total{kind="analyse",status="refused"} 1)"),
            std::string::npos);
  EXPECT_NE(text.find("expanse_runs_queued 0"), std::string::npos);
  EXPECT_NE(text.find("expanse_runs_running 0"), std::string::npos);
}

TEST(IntelligencePlane, RefusesOptionsThatMakeNoSense) {
  base::FakeClock clock;
  base::MetricRegistry metrics;
  store::MemoryRunStore runs;
  FakeAnalyser analyser;
  FakeDiagnoser diagnoser;
  const auto created = IntelligencePlane::Create(
      {.workers = 0}, runs, {analyser, diagnoser, TestRunbooks()}, clock, metrics);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().reason, "intelligence.options");
}

TEST(IntelligenceOptions, DefaultsAreThoseOfTheSettings) {
  const auto settings = base::Settings::Load(IntelligenceSettings(), "", {}, {});
  ASSERT_TRUE(settings) << settings.error().message;
  const IntelligenceOptions read = IntelligenceOptionsFrom(*settings);
  const IntelligenceOptions plain;
  EXPECT_EQ(read.workers, plain.workers);
  EXPECT_EQ(read.queue_workers, plain.queue_workers);
  EXPECT_EQ(read.backlog, plain.backlog);
  EXPECT_EQ(read.running_per_user, plain.running_per_user);
  EXPECT_EQ(read.queued_per_user, plain.queued_per_user);
  EXPECT_EQ(read.queued, plain.queued);
  EXPECT_EQ(read.run_timeout, plain.run_timeout);
  EXPECT_EQ(read.target_chance, plain.target_chance);
  EXPECT_EQ(read.runbook_directory, plain.runbook_directory);
  EXPECT_EQ(read.runbook_poll, plain.runbook_poll);
  EXPECT_EQ(read.auto_diagnose, plain.auto_diagnose);
  EXPECT_EQ(read.auto_diagnose_workers, plain.auto_diagnose_workers);
  EXPECT_EQ(read.auto_diagnose_settle, plain.auto_diagnose_settle);
  EXPECT_EQ(read.auto_diagnose_age, plain.auto_diagnose_age);
  EXPECT_EQ(read.auto_diagnose_runs, plain.auto_diagnose_runs);
  EXPECT_EQ(read.keep_runs, plain.keep_runs);
  EXPECT_EQ(read.runs_per_user, plain.runs_per_user);
  EXPECT_EQ(read.retention_interval, plain.retention_interval);
}

}  // namespace
}  // namespace expanse::intelligence
