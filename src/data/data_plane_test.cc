#include "data/data_plane.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "data/data_testing.h"
#include "evidence/wire.h"
#include "expanse/data/v1/ingest_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"
#include "net/connect_server.h"
#include "net/net_testing.h"

namespace expanse::data {
namespace {

using std::chrono::seconds;
namespace pb = google::protobuf;

// A whole data plane behind the router, with a caller of every kind.
class DataPlaneTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    auto created = DataPlane::Create({}, *stores_.records, *stores_.series, *stores_.blobs,
                                     control_, clock_, metrics_);
    ASSERT_TRUE(created);
    plane_ = std::move(*created);
    plane_->AddMethods(router_);
    AddCaller("member", net::CallerKind::kUser, "user-1", "org-1",
              {"executions.read", "computes.read"});
    AddCaller("member-without", net::CallerKind::kUser, "user-2", "org-1", {});
    AddCaller("stranger", net::CallerKind::kUser, "user-3", "org-2",
              {"executions.read", "computes.read"});
    AddCaller("compute", net::CallerKind::kCompute, "compute-a", "org-1", {});
    AddCaller("other-compute", net::CallerKind::kCompute, "compute-b", "org-2", {});
    AddCaller("plane", net::CallerKind::kPlane, "intelligence", "", {});
  }
  void AddCaller(const std::string& token, net::CallerKind kind, std::string subject,
                 std::string organisation, std::vector<std::string> permissions) {
    authenticator_.Add(token, {.kind = kind,
                               .subject = std::move(subject),
                               .organisation_id = std::move(organisation),
                               .session_id = "s",
                               .permissions = std::move(permissions),
                               .expires_at = now_ + seconds(600)});
  }

  net::HttpResponse Post(const std::string& method, const std::string& token,
                         const std::string& type, std::string body) {
    net::HttpRequest request;
    request.method = "POST";
    request.path = "/expanse.data.v1." + method;
    request.headers.Add("Content-Type", type);
    if (!token.empty()) request.headers.Add("Authorization", "Bearer " + token);
    request.body = std::move(body);
    request.peer = "127.0.0.1:1";
    request.request_id = "r";
    request.received = std::chrono::steady_clock::now();
    return router_.Handle(request);
  }
  net::HttpResponse Json(const std::string& method, const std::string& token, std::string body) {
    return Post(method, token, "application/json", std::move(body));
  }
  // "ok", or the code of the error.
  static std::string Outcome(const net::HttpResponse& response) {
    if (response.status == 200) return "ok";
    const std::string key = "\"code\":\"";
    const std::size_t at = response.body.find(key);
    if (at == std::string::npos) return response.body;
    const std::size_t start = at + key.size();
    return response.body.substr(start, response.body.find('"', start) - start);
  }
  void PutRun() {
    const auto response = Post("IngestService/Ingest", "compute", "application/proto",
                               RequestOf({RunRecord(1, now_, "r1"), SampleRecord(2, now_, "r1", 1),
                                          TailRecord(3, now_, "r1", "secret tail"),
                                          BundleRecord(4, now_, "r1", "secret source")})
                                   .SerializeAsString());
    ASSERT_EQ(response.status, 200) << response.body;
    evidence::HealthReport report{
        .daemon_version = "0.1.0", .node = "n1", .started_at = now_, .rows = {}};
    v1::ReportHealthRequest health;
    evidence::ToProto(report, &health);
    ASSERT_EQ(Post("IngestService/ReportHealth", "compute", "application/proto",
                   health.SerializeAsString())
                  .status,
              200);
    v1::ReportClusterStateRequest cluster;
    evidence::ToProto({.cluster = "c1", .observed_at = now_}, cluster.mutable_state());
    ASSERT_EQ(Post("IngestService/ReportClusterState", "compute", "application/proto",
                   cluster.SerializeAsString())
                  .status,
              200);
  }

  base::FakeClock clock_;
  const base::WallTime now_ = clock_.Now();
  base::MetricRegistry metrics_;
  TestStores stores_ = MakeStores(GetParam(), clock_);
  FakeControlClient control_;
  net::FakeAuthenticator authenticator_;
  net::ConnectRouter router_{{}, authenticator_, metrics_};
  std::unique_ptr<DataPlane> plane_;
};

// Each method with a good body for the run of PutRun, and what each caller is told.
struct Row {
  std::string method;
  std::string body;
  std::map<std::string, std::string> answers;  // caller -> "ok" or code
};

std::vector<Row> AccessTable() {
  const std::string id = IdOf("r1");
  const std::string by_id = R"({"execution_id": ")" + id + R"("})";
  const auto reader = [](std::string stranger) -> std::map<std::string, std::string> {
    return {{"", "unauthenticated"},
            {"forged", "unauthenticated"},
            {"member", "ok"},
            {"member-without", "permission_denied"},
            {"stranger", std::move(stranger)},
            {"compute", "permission_denied"},
            {"other-compute", "permission_denied"},
            {"plane", "permission_denied"}};
  };
  const std::map<std::string, std::string> computes = {
      {"", "unauthenticated"},           {"forged", "unauthenticated"},
      {"member", "permission_denied"},   {"member-without", "permission_denied"},
      {"stranger", "permission_denied"}, {"compute", "ok"},
      {"other-compute", "ok"},           {"plane", "permission_denied"}};
  const std::map<std::string, std::string> everybody = {
      {"", "ok"}, {"member", "ok"}, {"compute", "ok"}};
  return {
      {"IngestService/ExchangeInstallToken",
       R"({"install_token": ")" + base::NewSecret("exp_install_") +
           R"(", "type": "SOURCE_TYPE_HOST"})",
       everybody},
      {"IngestService/Ingest", R"({"stream_id": "0193a8b2-1111-7000-8000-00000000000f"})",
       computes},
      {"IngestService/ReportHealth", R"({"node": "n9", "started_at": "2027-01-15T08:00:00Z"})",
       computes},
      {"IngestService/ReportClusterState",
       R"({"state": {"cluster": "c9", "observed_at": "2027-01-15T08:00:00Z"}})", computes},
      {"QueryService/ListExecutions", "{}", reader("ok")},
      {"QueryService/GetExecution", by_id, reader("not_found")},
      {"QueryService/ListMetrics", by_id, reader("not_found")},
      {"QueryService/QueryMetric", R"({"execution_id": ")" + id + R"(", "metric": "cpu"})",
       reader("not_found")},
      {"QueryService/GetLogTail", by_id, reader("not_found")},
      {"QueryService/GetSourceBundle", R"({"execution_id": ")" + id + R"(", "include_data": true})",
       reader("not_found")},
      {"QueryService/GetComputeHealth", R"({"compute_id": "compute-a"})", reader("ok")},
      {"QueryService/GetClusterState", R"({"compute_id": "compute-a"})", reader("ok")},
  };
}

TEST_P(DataPlaneTest, AnswersEveryCallerOfEveryMethodAsTheTableSays) {
  PutRun();
  for (const Row& row : AccessTable()) {
    for (const auto& [caller, answer] : row.answers) {
      const net::HttpResponse response = Json(row.method, caller, row.body);
      EXPECT_EQ(Outcome(response), answer)
          << row.method << " by '" << caller << "': " << response.body;
      if (caller == "member" || answer != "ok" || row.method.starts_with("Ingest")) continue;
      EXPECT_EQ(response.body, "{}") << row.method << ": nothing of another organisation";
    }
  }
}

TEST_P(DataPlaneTest, HasATableRowForEveryMethodOfTheContract) {
  std::set<std::string> rows;
  for (const Row& row : AccessTable()) rows.insert(row.method);
  for (const pb::FileDescriptor* file :
       {v1::IngestRequest::descriptor()->file(), v1::ListExecutionsRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const pb::ServiceDescriptor* service = file->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        const std::string name = service->name() + "/" + service->method(m)->name();
        EXPECT_TRUE(rows.contains(name)) << name;
        EXPECT_NE(Outcome(Json(name, "member", "{}")), "unimplemented") << name;
      }
    }
  }
}

TEST_P(DataPlaneTest, ShowsAnotherOrganisationNothingByNativeIdEither) {
  PutRun();
  const std::string body = R"({"native_id": "r1"})";
  EXPECT_EQ(Outcome(Json("QueryService/GetExecution", "member", body)), "ok");
  EXPECT_EQ(Outcome(Json("QueryService/GetExecution", "stranger", body)), "not_found");
}

TEST_P(DataPlaneTest, SpeaksTheJsonOfTheReference) {
  PutRun();
  const net::HttpResponse response =
      Json("QueryService/ListExecutions", "member", R"({"page_size": 1})");
  ASSERT_EQ(response.status, 200) << response.body;
  for (const char* part :
       {"\"execution_id\":", "\"native_id\":\"r1\"", "\"status\":\"EXECUTION_STATUS_RUNNING\"",
        "\"source_type\":\"SOURCE_TYPE_HOST\"", "\"started_at\":\"2027-01-15T08:00:00Z\""}) {
    EXPECT_NE(response.body.find(part), std::string::npos) << part << " in " << response.body;
  }
}

TEST_P(DataPlaneTest, RefusesBodiesThatAreNoRequest) {
  EXPECT_EQ(Outcome(Post("IngestService/Ingest", "compute", "application/proto", "\xff\xff")),
            "invalid_argument");
  EXPECT_EQ(Outcome(Json("IngestService/Ingest", "compute", R"({"stream_id": "x"})")),
            "invalid_argument");
}

TEST(DataPlane, RefusesOptionsThatMakeNoSense) {
  base::FakeClock clock;
  base::MetricRegistry metrics;
  TestStores stores = MakeStores(Backend::kMemory, clock);
  FakeControlClient control;
  const auto created = DataPlane::Create({.retention_interval = {}}, *stores.records,
                                         *stores.series, *stores.blobs, control, clock, metrics);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().reason, "data.options");
}

INSTANTIATE_TEST_SUITE_P(Backends, DataPlaneTest, testing::ValuesIn(AllBackends()),
                         [](const auto& test) { return BackendName(test.param); });

}  // namespace
}  // namespace expanse::data
