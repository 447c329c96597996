#include "data/queries.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/text.h"
#include "data/data_testing.h"
#include "data/ingest.h"
#include "data/memory_stores_testing.h"
#include "evidence/wire.h"
#include "expanse/data/v1/ingest_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::data {
namespace {

using base::Code;
using evidence::Execution;
using std::chrono::seconds;

class QueriesTest : public testing::TestWithParam<Backend> {
 protected:
  void Put(const std::vector<evidence::Record>& records,
           const net::CallContext& context = ComputeCall()) {
    std::vector<evidence::Record> numbered = records;
    for (evidence::Record& record : numbered) record.sequence = ++sequence_;
    const auto response = ingest_.Apply(context, RequestOf(numbered));
    ASSERT_TRUE(response) << response.error().message;
    ASSERT_EQ(response->rejected_size(), 0) << response->rejected(0).message();
  }
  // Runs named r0, r1, … that start a second apart, the last one newest.
  void PutRuns(int count) {
    std::vector<evidence::Record> records;
    for (int i = 0; i < count; ++i)
      records.push_back(RunRecord(0, now_ + seconds(i), "r" + std::to_string(i)));
    Put(records);
  }
  std::vector<std::string> Names(const v1::ListExecutionsResponse& response) {
    std::vector<std::string> names;
    for (const auto& execution : response.executions()) names.push_back(execution.native_id());
    return names;
  }
  std::vector<std::string> ListNames(const v1::ListExecutionsRequest& request) {
    const auto response = queries_.ListExecutions(UserCall(), request);
    EXPECT_TRUE(response) << response.error().message;
    return response ? Names(*response) : std::vector<std::string>{};
  }

  base::FakeClock clock_;
  const base::WallTime now_ = clock_.Now();
  base::MetricRegistry metrics_;
  TestStores stores_ = MakeStores(GetParam(), clock_);
  DataOptions options_{.records_per_second = 0, .samples_per_second = 0};
  Ingest ingest_{options_, *stores_.records, *stores_.series, *stores_.blobs, clock_, metrics_};
  Queries queries_{options_, *stores_.records, *stores_.blobs};
  std::uint64_t sequence_ = 0;
};

TEST_P(QueriesTest, ListsNewestFirst) {
  PutRuns(3);
  EXPECT_EQ(ListNames({}), (std::vector<std::string>{"r2", "r1", "r0"}));
}

TEST_P(QueriesTest, PutsQueuedRunsWhereTheirSubmissionBelongs) {
  PutRuns(3);
  Put({RunRecord(0, now_, "queued", [&](Execution* e) {
    e->status = evidence::ExecutionStatus::kQueued;
    e->started_at.reset();
    e->submitted_at = now_ + std::chrono::milliseconds(1500);
  })});
  EXPECT_EQ(ListNames({}), (std::vector<std::string>{"r2", "queued", "r1", "r0"}));
}

TEST_P(QueriesTest, GivesTwentyFiveUnlessToldOtherwise) {
  PutRuns(30);
  const auto response = queries_.ListExecutions(UserCall(), {});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->executions_size(), 25);
  EXPECT_NE(response->next_page_token(), "");
  v1::ListExecutionsRequest request;
  request.set_page_size(1001);
  const auto refused = queries_.ListExecutions(UserCall(), request);
  EXPECT_EQ(refused.error().reason, "page_size.range");
  request.set_page_size(1000);
  EXPECT_EQ(queries_.ListExecutions(UserCall(), request)->next_page_token(), "");
}

TEST_P(QueriesTest, PagesThroughEverythingOnce) {
  PutRuns(23);
  for (const std::uint32_t size : {1U, 5U, 7U, 23U, 24U}) {
    v1::ListExecutionsRequest request;
    request.set_page_size(size);
    std::vector<std::string> seen;
    int pages = 0;
    do {
      const auto response = queries_.ListExecutions(UserCall(), request);
      ASSERT_TRUE(response) << response.error().message;
      EXPECT_LE(response->executions_size(), static_cast<int>(size));
      for (const std::string& name : Names(*response)) seen.push_back(name);
      request.set_page_token(response->next_page_token());
      ++pages;
    } while (!request.page_token().empty());
    ASSERT_EQ(seen.size(), 23U);
    for (int i = 0; i < 23; ++i)
      EXPECT_EQ(seen[static_cast<std::size_t>(i)], "r" + std::to_string(22 - i));
    EXPECT_EQ(pages, (23 + static_cast<int>(size) - 1) / static_cast<int>(size))
        << "no empty last page";
  }
}

TEST_P(QueriesTest, PagesSteadilyWhileRunsAreInserted) {
  PutRuns(40);
  std::mt19937 random(7);
  std::multiset<std::string> seen;
  v1::ListExecutionsRequest request;
  request.set_page_size(6);
  int inserted = 0;
  do {
    const auto response = queries_.ListExecutions(UserCall(), request);
    ASSERT_TRUE(response) << response.error().message;
    for (const std::string& name : Names(*response)) seen.insert(name);
    request.set_page_token(response->next_page_token());
    // New runs at the top, and late ones anywhere.
    Put({RunRecord(0, now_ + seconds(1000 + inserted), "new" + std::to_string(inserted)),
         RunRecord(0, now_ + std::chrono::milliseconds(random() % 40'000),
                   "late" + std::to_string(inserted))});
    ++inserted;
  } while (!request.page_token().empty());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(seen.count("r" + std::to_string(i)), 1U) << i;
  for (const std::string& name : seen) EXPECT_EQ(seen.count(name), 1U) << name;
  for (int i = 0; i < inserted; ++i) EXPECT_EQ(seen.count("new" + std::to_string(i)), 0U);
}

TEST_P(QueriesTest, PagesOverRunsThatStartAtOnce) {
  std::vector<evidence::Record> records;
  for (int i = 0; i < 20; ++i) records.push_back(RunRecord(0, now_, "r" + std::to_string(i)));
  Put(records);
  v1::ListExecutionsRequest request;
  request.set_page_size(3);
  std::set<std::string> seen;
  std::size_t total = 0;
  do {
    const auto response = queries_.ListExecutions(UserCall(), request);
    ASSERT_TRUE(response);
    for (const std::string& name : Names(*response)) seen.insert(name);
    total += static_cast<std::size_t>(response->executions_size());
    request.set_page_token(response->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(seen.size(), 20U);
  EXPECT_EQ(total, 20U);
}

TEST_P(QueriesTest, EndsAPageEarlyThatWouldBeTooLarge) {
  std::vector<evidence::Record> records;
  for (int i = 0; i < 12; ++i) {
    records.push_back(RunRecord(0, now_ + seconds(i), "r" + std::to_string(i),
                                [](Execution* e) { e->nodes.assign(2000, "node-name"); }));
  }
  Put(records);
  Queries bounded({.max_response_bytes = 64 << 10}, *stores_.records, *stores_.blobs);
  v1::ListExecutionsRequest request;
  request.set_page_size(12);
  std::vector<std::string> seen;
  do {
    const auto response = bounded.ListExecutions(UserCall(), request);
    ASSERT_TRUE(response);
    EXPECT_LE(response->ByteSizeLong(), 80U << 10);
    for (const std::string& name : Names(*response)) seen.push_back(name);
    request.set_page_token(response->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(seen.size(), 12U);
}

TEST_P(QueriesTest, FiltersByEveryField) {
  Put({RunRecord(0, now_, "plain"),
       RunRecord(0, now_, "failed",
                 [](Execution* e) {
                   e->status = evidence::ExecutionStatus::kFailed;
                   e->outcome = evidence::Outcome::kOutOfMemory;
                 }),
       RunRecord(0, now_, "of-ada", [](Execution* e) { e->user = "ada"; }),
       RunRecord(0, now_, "of-grace", [](Execution* e) { e->user = "grace"; }),
       RunRecord(0, now_ - seconds(500), "early"), RunRecord(0, now_ + seconds(500), "late")});
  sequence_ = 0;
  Put({RunRecord(0, now_, "elsewhere")}, ComputeCall("compute-b"));
  const auto list = [&](const std::function<void(v1::ListExecutionsRequest*)>& set) {
    v1::ListExecutionsRequest request;
    set(&request);
    const std::vector<std::string> names = ListNames(request);
    return std::set<std::string>(names.begin(), names.end());
  };
  using Set = std::set<std::string>;
  using Request = v1::ListExecutionsRequest;
  EXPECT_EQ(list([](Request* r) { r->set_status(v1::EXECUTION_STATUS_FAILED); }), Set{"failed"});
  EXPECT_EQ(list([](Request* r) { r->set_outcome(v1::EXECUTION_OUTCOME_OUT_OF_MEMORY); }),
            Set{"failed"});
  EXPECT_EQ(list([](Request* r) { r->set_outcome(v1::EXECUTION_OUTCOME_SUCCESS); }), Set{});
  EXPECT_EQ(
      list([](Request* r) { r->add_users("ada"), r->add_users("grace"), r->add_users("nobody"); }),
      (Set{"of-ada", "of-grace"}));
  EXPECT_EQ(list([](Request* r) { r->set_compute_id("compute-b"); }), Set{"elsewhere"});
  EXPECT_EQ(list([](Request* r) { r->set_native_id("early"); }), Set{"early"});
  EXPECT_EQ(list([](Request* r) { r->set_source_type(common::v1::SOURCE_TYPE_SLURM); }), Set{});
  EXPECT_EQ(list([](Request* r) { r->set_source_type(common::v1::SOURCE_TYPE_HOST); }).size(), 7U);
  const std::int64_t at = base::ToMicros(now_) / 1'000'000;
  EXPECT_EQ(list([&](Request* r) { r->mutable_started_after()->set_seconds(at + 500); }),
            Set{"late"})
      << "inclusive";
  EXPECT_EQ(list([&](Request* r) { r->mutable_started_before()->set_seconds(at); }), Set{"early"})
      << "exclusive";
  EXPECT_EQ(list([](Request* r) { r->add_users("ada"), r->set_compute_id("compute-b"); }), Set{})
      << "all must hold";
}

TEST_P(QueriesTest, RefusesBadFilters) {
  const auto reason =
      [&](const std::function<void(v1::ListExecutionsRequest*)>& set) -> std::string {
    v1::ListExecutionsRequest request;
    set(&request);
    const auto response = queries_.ListExecutions(UserCall(), request);
    if (response) return "accepted";
    EXPECT_EQ(response.error().code, Code::kInvalidArgument);
    return response.error().reason;
  };
  using Request = v1::ListExecutionsRequest;
  EXPECT_EQ(reason([](Request* r) { r->set_status(static_cast<v1::ExecutionStatus>(99)); }),
            "filter.status");
  EXPECT_EQ(reason([](Request* r) { r->set_outcome(static_cast<v1::ExecutionOutcome>(99)); }),
            "filter.outcome");
  EXPECT_EQ(reason([](Request* r) { r->set_source_type(static_cast<common::v1::SourceType>(99)); }),
            "filter.source_type");
  EXPECT_EQ(reason([](Request* r) { r->add_users(""); }), "filter.users");
  EXPECT_EQ(reason([](Request* r) {
              for (int i = 0; i < 101; ++i) r->add_users("u");
            }),
            "filter.users");
  EXPECT_EQ(reason([](Request* r) { r->set_native_id(std::string(5000, 'x')); }),
            "filter.too_long");
  EXPECT_EQ(reason([](Request* r) { r->mutable_started_after()->set_seconds(INT64_MAX); }),
            "time.range");
  EXPECT_EQ(reason([](Request* r) { r->mutable_started_before()->set_nanos(-1); }), "time.range");
  EXPECT_EQ(reason([](Request* r) { r->set_page_token("forged"); }), "page_token.malformed");
}

TEST_P(QueriesTest, RefusesAPageTokenOfAnotherFilterOrOrganisation) {
  PutRuns(3);
  v1::ListExecutionsRequest request;
  request.set_page_size(1);
  request.set_page_token(queries_.ListExecutions(UserCall(), request)->next_page_token());
  EXPECT_EQ(queries_.ListExecutions(UserCall("org-2"), request).error().reason,
            "page_token.filter");
  request.set_status(v1::EXECUTION_STATUS_FAILED);
  EXPECT_EQ(queries_.ListExecutions(UserCall(), request).error().reason, "page_token.filter");
}

TEST_P(QueriesTest, GivesAnExecutionByItsId) {
  Put({RunRecord(0, now_, "r1", [](Execution* e) { e->name = "caf\xe9"; })});
  v1::GetExecutionRequest request;
  request.set_execution_id(IdOf("r1"));
  const auto response = queries_.GetExecution(UserCall(), request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->execution().name(), "caf\uFFFD");
  EXPECT_EQ(response->execution().raw_bytes().at("name"), "caf\xe9");
}

TEST_P(QueriesTest, GivesTheNewestOfANativeId) {
  Put({RunRecord(0, now_, "a", [](Execution* e) { e->native_id = "41"; }),
       RunRecord(0, now_ + seconds(9), "b", [](Execution* e) { e->native_id = "41"; }),
       RunRecord(0, now_ + seconds(5), "c", [](Execution* e) { e->native_id = "41"; })});
  v1::GetExecutionRequest request;
  request.set_native_id("41");
  request.set_source_type(common::v1::SOURCE_TYPE_HOST);
  EXPECT_EQ(queries_.GetExecution(UserCall(), request)->execution().execution_id(), IdOf("b"));
  request.set_compute_id("compute-b");
  EXPECT_EQ(queries_.GetExecution(UserCall(), request).error().code, Code::kNotFound);
  request.clear_compute_id();
  request.set_source_type(common::v1::SOURCE_TYPE_SLURM);
  const auto missing = queries_.GetExecution(UserCall(), request);
  EXPECT_EQ(missing.error().reason, "execution.not_found");
  EXPECT_EQ(missing.error().message, "no execution with the slurm id 41 in this organisation");
}

TEST_P(QueriesTest, WantsExactlyOneWayToNameAnExecution) {
  EXPECT_EQ(queries_.GetExecution(UserCall(), {}).error().reason, "execution.which");
  v1::GetExecutionRequest request;
  request.set_execution_id(IdOf("r1"));
  request.set_native_id("41");
  EXPECT_EQ(queries_.GetExecution(UserCall(), request).error().reason, "execution.which");
  request.clear_native_id();
  EXPECT_EQ(queries_.GetExecution(UserCall(), request).error().reason, "execution.not_found");
  request.set_execution_id("41982");
  EXPECT_EQ(queries_.GetExecution(UserCall(), request).error().reason, "execution.id");
}

TEST_P(QueriesTest, GivesLogTailsByteExact) {
  evidence::Record tail = TailRecord(0, now_, "r1", std::string("bin\0\xff", 5));
  auto& log = std::get<evidence::LogTail>(tail.payload);
  log.first_error = "Traceback";
  log.total_bytes = 900;
  log.offset = 895;
  log.redactions = 2;
  evidence::Record other = TailRecord(0, now_, "r1", "");
  std::get<evidence::LogTail>(other.payload).stream = "stderr";
  Put({RunRecord(0, now_, "r1"), tail, other});
  v1::GetLogTailRequest request;
  request.set_execution_id(IdOf("r1"));
  EXPECT_EQ(queries_.GetLogTail(UserCall(), request)->streams_size(), 2);
  request.set_stream("stdout");
  const auto response = queries_.GetLogTail(UserCall(), request);
  ASSERT_TRUE(response) << response.error().message;
  ASSERT_EQ(response->streams_size(), 1);
  EXPECT_EQ(response->streams(0).data(), std::string("bin\0\xff", 5));
  EXPECT_EQ(response->streams(0).first_error(), "Traceback");
  EXPECT_EQ(response->streams(0).offset(), 895U);
  EXPECT_EQ(response->streams(0).total_bytes(), 900U);
  EXPECT_EQ(response->streams(0).redactions(), 2U);
  request.set_stream("stderr");
  EXPECT_EQ(queries_.GetLogTail(UserCall(), request)->streams(0).data(), "");
  request.set_stream("combined");
  EXPECT_EQ(queries_.GetLogTail(UserCall(), request)->streams_size(), 0);
  request.set_stream("stdin");
  EXPECT_EQ(queries_.GetLogTail(UserCall(), request).error().reason, "log.stream");
}

// Reaches behind the interface, into the stores in memory.
class QueriesMemoryTest : public QueriesTest {};

TEST_P(QueriesMemoryTest, SaysWhenStoredBytesAreLost) {
  auto& memory = static_cast<MemoryBlobStore&>(*stores_.blobs);
  Put({RunRecord(0, now_, "r1"), TailRecord(0, now_, "r1", "text")});
  memory.Corrupt(stores_.records->LogTails(IdOf("r1"))->front().data_blob);
  v1::GetLogTailRequest request;
  request.set_execution_id(IdOf("r1"));
  const auto response = queries_.GetLogTail(UserCall(), request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kDataLoss);
  EXPECT_EQ(response.error().reason, "blob.lost");
}

TEST_P(QueriesTest, GivesSourcesWithAndWithoutTheirText) {
  evidence::Record bundle = BundleRecord(0, now_, "r1", "#!/bin/sh\necho\n");
  auto& sources = std::get<evidence::SourceBundle>(bundle.payload);
  sources.files.push_back({.path = "odd\xff.py",
                           .role = "import",
                           .data = "",
                           .content_hash = std::string(64, '0'),
                           .redactions = 3});
  Put({RunRecord(0, now_, "r1"), bundle, RunRecord(0, now_, "r2")});
  v1::GetSourceBundleRequest request;
  request.set_execution_id(IdOf("r1"));
  auto response = queries_.GetSourceBundle(UserCall(), request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->bundle_hash(), evidence::BundleHash(sources));
  ASSERT_EQ(response->files_size(), 2);
  EXPECT_EQ(response->files(0).path(), "job.sh");
  EXPECT_EQ(response->files(0).size_bytes(), 15U);
  EXPECT_EQ(response->files(0).data(), "");
  EXPECT_EQ(response->files(1).path(), "odd\uFFFD.py");
  EXPECT_EQ(response->files(1).redactions(), 3U);
  EXPECT_EQ(response->skipped(0).path(), "model.bin");
  request.set_include_data(true);
  EXPECT_EQ(queries_.GetSourceBundle(UserCall(), request)->files(0).data(), "#!/bin/sh\necho\n");
  request.set_execution_id(IdOf("r2"));
  response = queries_.GetSourceBundle(UserCall(), request);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->bundle_hash(), "");
}

TEST_P(QueriesTest, GivesTheHealthOfAComputesNodes) {
  evidence::HealthReport report{.daemon_version = "0.1.0",
                                .node = "n1",
                                .started_at = now_,
                                .rows = {{.collector = "cgroup",
                                          .status = evidence::HealthStatus::kFailed,
                                          .reason = "no_permission",
                                          .message = "ask",
                                          .checked_at = now_,
                                          .figures = {{"x", 1.5}}}}};
  v1::ReportHealthRequest sent;
  evidence::ToProto(report, &sent);
  ASSERT_TRUE(ingest_.ReportHealth(ComputeCall(), sent));
  v1::GetComputeHealthRequest request;
  request.set_compute_id("compute-a");
  const auto response = queries_.GetComputeHealth(UserCall(), request);
  ASSERT_TRUE(response);
  ASSERT_EQ(response->nodes_size(), 1);
  EXPECT_EQ(response->nodes(0).node(), "n1");
  EXPECT_EQ(response->nodes(0).daemon_version(), "0.1.0");
  EXPECT_EQ(response->nodes(0).reported_at().seconds(), base::ToMicros(now_) / 1'000'000);
  EXPECT_EQ(response->nodes(0).rows(0).SerializeAsString(), sent.rows(0).SerializeAsString());
  EXPECT_EQ(queries_.GetComputeHealth(UserCall("org-2"), request)->nodes_size(), 0);
  request.clear_compute_id();
  EXPECT_EQ(queries_.GetComputeHealth(UserCall(), request).error().reason, "compute.id");
}

evidence::ClusterState SmallCluster(base::WallTime at) {
  evidence::ClusterState state;
  state.cluster = "lab";
  state.observed_at = at;
  state.pending_jobs = 2;
  state.pending_by_reason = {{"Priority", 2}};
  evidence::PendingJob job;
  job.key = {evidence::SourceType::kSlurm, "lab/7@1800000000"};
  job.native_id = "7";
  job.user = "ada";
  job.name = "secret plan";
  job.reason = "Priority";
  state.pending = {job};
  state.nodes = {{.name = "n1", .state = "IDLE", .cpus_total = 4}};
  return state;
}

TEST_P(QueriesTest, GivesTheNewestStateOfAComputesCluster) {
  v1::GetClusterStateRequest request;
  request.set_compute_id("compute-a");
  auto response = queries_.GetClusterState(UserCall(), request);
  ASSERT_TRUE(response);
  EXPECT_FALSE(response->has_state()) << "none was reported";
  v1::ReportClusterStateRequest sent;
  evidence::ToProto(SmallCluster(now_), sent.mutable_state());
  const auto reported = ingest_.ReportClusterState(ComputeCall(), sent);
  ASSERT_TRUE(reported) << reported.error().message;
  EXPECT_EQ(reported->interval().seconds(), 30);
  response = queries_.GetClusterState(UserCall(), request);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->reported_at().seconds(), base::ToMicros(now_) / 1'000'000);
  EXPECT_EQ(response->state().nodes(0).cpus_total(), 4U);
  ASSERT_EQ(response->state().pending_size(), 1);
  EXPECT_EQ(response->state().pending(0).execution_id(),
            evidence::ExecutionId("compute-a", {evidence::SourceType::kSlurm, "lab/7@1800000000"}));
  EXPECT_FALSE(response->pending_withheld());
  EXPECT_FALSE(queries_.GetClusterState(UserCall("org-2"), request)->has_state());
  request.clear_compute_id();
  EXPECT_EQ(queries_.GetClusterState(UserCall(), request).error().reason, "compute.id");
}

TEST_P(QueriesTest, TellsPendingJobsOnlyToThoseWhoMayReadExecutions) {
  v1::ReportClusterStateRequest sent;
  evidence::ToProto(SmallCluster(now_), sent.mutable_state());
  ASSERT_TRUE(ingest_.ReportClusterState(ComputeCall(), sent));
  v1::GetClusterStateRequest request;
  request.set_compute_id("compute-a");
  net::CallContext operator_call = UserCall();
  operator_call.caller.permissions = {"computes.read"};
  const auto response = queries_.GetClusterState(operator_call, request);
  ASSERT_TRUE(response);
  EXPECT_TRUE(response->pending_withheld());
  EXPECT_EQ(response->state().pending_jobs(), 2U) << "counts stay";
  EXPECT_EQ(response->state().pending_by_reason().at("Priority"), 2U);
  EXPECT_EQ(response->SerializeAsString().find("ada"), std::string::npos);
  EXPECT_EQ(response->SerializeAsString().find("secret plan"), std::string::npos);
}

TEST_P(QueriesTest, LetsInOnlyUsersOfAnOrganisation) {
  Put({RunRecord(0, now_, "r1")});
  for (const auto& context : {net::CallContext{}, ComputeCall(), UserCall("")}) {
    EXPECT_EQ(queries_.ListExecutions(context, {}).error().code, Code::kPermissionDenied);
    v1::GetExecutionRequest get;
    get.set_execution_id(IdOf("r1"));
    EXPECT_EQ(queries_.GetExecution(context, get).error().code, Code::kPermissionDenied);
    v1::GetLogTailRequest tail;
    tail.set_execution_id(IdOf("r1"));
    EXPECT_EQ(queries_.GetLogTail(context, tail).error().code, Code::kPermissionDenied);
    v1::GetSourceBundleRequest bundle;
    bundle.set_execution_id(IdOf("r1"));
    EXPECT_EQ(queries_.GetSourceBundle(context, bundle).error().code, Code::kPermissionDenied);
    v1::GetComputeHealthRequest health;
    health.set_compute_id("compute-a");
    EXPECT_EQ(queries_.GetComputeHealth(context, health).error().code, Code::kPermissionDenied);
    v1::GetClusterStateRequest cluster;
    cluster.set_compute_id("compute-a");
    EXPECT_EQ(queries_.GetClusterState(context, cluster).error().code, Code::kPermissionDenied);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, QueriesMemoryTest, testing::Values(Backend::kMemory),
                         [](const auto& test) { return BackendName(test.param); });
INSTANTIATE_TEST_SUITE_P(Backends, QueriesTest, testing::ValuesIn(AllBackends()),
                         [](const auto& test) { return BackendName(test.param); });

}  // namespace
}  // namespace expanse::data
