// What every backend of EvidenceStore does, as tests. A backend's test file includes this once and
// says
//   INSTANTIATE_TEST_SUITE_P(Sqlite, EvidenceStoreContract,
//   ::testing::Values(EvidenceBackend{...}));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/files.h"
#include "base/time.h"
#include "store/records/evidence_store.h"
#include "store/sql/fault_testing.h"

namespace expanse::store {

struct EvidenceBackend {
  // Opens the store whose data is in `directory`; again after the first one has been destroyed.
  std::function<base::Result<std::unique_ptr<EvidenceStore>>(const std::string& directory,
                                                             base::Clock& clock)>
      open;
};

class EvidenceStoreContract : public ::testing::TestWithParam<EvidenceBackend> {
 protected:
  void SetUp() override {
    auto dir = StoreDirectory();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
    Reopen();
  }
  void Reopen() {
    store_.reset();
    auto opened = GetParam().open(dir_->path(), clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

  static base::WallTime At(std::int64_t seconds) {
    return base::WallTime(std::chrono::seconds(1'700'000'000 + seconds));
  }
  static EvidenceChange Seen(std::uint64_t sequence, const std::string& id,
                             evidence::Execution execution) {
    return {.sequence = sequence,
            .execution_id = id,
            .source_type = evidence::SourceType::kSlurm,
            .execution = std::move(execution)};
  }
  static evidence::Execution Running(std::int64_t started) {
    evidence::Execution execution;
    execution.status = evidence::ExecutionStatus::kRunning;
    execution.started_at = At(started);
    return execution;
  }
  // Every field set, text that is not UTF-8 wherever text may be of any kind.
  static evidence::Execution Full() {
    const std::string raw("caf\xE9 \xFF\x01 \xC3\x28", 9);
    evidence::Execution e;
    e.execution_id = "full";
    e.compute_id = "c1";
    e.source_type = evidence::SourceType::kSlurm;
    e.native_id = "4711_" + raw;
    e.parent_native_id = "4700";
    e.restart_count = 2;
    e.name = raw;
    e.user = raw + "u";
    e.account = raw + "a";
    e.queue = "gpu";
    e.qos = "normal";
    e.comment = raw + raw;
    e.working_directory = "/home/" + raw;
    e.command = {"srun", raw, "", "--x=1"};
    e.nodes = {"n1", raw};
    e.labels = {{"team", "ä"}, {raw, raw}, {"empty", ""}};
    e.status = evidence::ExecutionStatus::kFailed;
    e.outcome = evidence::Outcome::kOutOfMemory;
    e.native_state = "OUT_OF_MEMORY";
    e.native_reason = raw;
    e.exit_code = -1;
    e.signal = 9;
    e.submitted_at = At(1) + std::chrono::microseconds(1);
    e.started_at = At(2) + std::chrono::microseconds(999'999);
    e.ended_at = At(3);
    e.eligible_at = At(1);
    e.suspended_s = 7;
    e.lossy_text = true;
    e.requested = {.cpu_cores = 0.5,
                   .memory_bytes = 1ULL << 40,
                   .gpu_count = 0,
                   .gpu_type = "h100",
                   .node_count = 2,
                   .task_count = 3,
                   .walltime_s = 3600,
                   .tres = "cpu=1," + raw};
    e.allocated = {.cpu_cores = 2,
                   .memory_bytes = 0,
                   .gpu_count = 8,
                   .gpu_type = "",
                   .node_count = 1,
                   .task_count = {},
                   .walltime_s = {},
                   .tres = ""};
    e.used.cpu_s = 12.25;
    e.used.cpu_user_s = 0.1;
    e.used.cpu_system_s = 0;
    e.used.memory_peak_bytes = 123;
    e.used.memory_peak_basis = "cgroup_peak";
    e.used.io_read_bytes = 0;
    e.used.io_write_bytes = 5;
    e.used.oom_kills = 1;
    e.steps.resize(2);
    e.steps[0].id = "batch";
    e.steps[0].status = evidence::ExecutionStatus::kFailed;
    e.steps[0].native_state = "OUT_OF_MEMORY";
    e.steps[0].exit_code = 0;
    e.steps[0].signal = 125;
    e.steps[0].started_at = At(2);
    e.steps[0].ended_at = At(3);
    e.steps[0].node_count = 1;
    e.steps[0].task_count = 4;
    e.steps[0].used = e.used;
    e.steps[0].memory_peak_task_bytes = 40;
    e.steps[0].tres_used = "cpu=1";
    e.steps[1].id = "0";
    e.steps[1].name = raw;
    e.stdout_path = raw;
    e.stderr_path = "/e";
    e.bundle_hash = "sha256:00";
    e.capture_notes = {"a note"};
    e.updated_at = At(4);
    return e;
  }

  base::Result<std::uint64_t> Apply(std::vector<EvidenceChange> changes,
                                    const std::string& stream = "s") {
    return store_->Apply("org", "c1", stream, changes);
  }
  // Applies as the next change of stream "put".
  void Put(const std::string& id, evidence::Execution execution, const std::string& compute = "c1",
           const std::string& organisation = "org") {
    const EvidenceChange change = Seen(++sequence_, id, std::move(execution));
    auto applied = store_->Apply(organisation, compute, "put", std::span(&change, 1));
    ASSERT_TRUE(applied) << applied.error().message;
    ASSERT_EQ(*applied, sequence_);
  }
  // All pages of a list, checked for order, as ids.
  std::vector<std::string> Ids(const ExecutionFilter& filter, std::size_t limit) {
    std::vector<std::string> ids;
    std::optional<ExecutionCursor> after;
    do {
      auto page = store_->List(filter, after, limit);
      EXPECT_TRUE(page) << (page ? "" : page.error().message);
      if (!page) return ids;
      EXPECT_LE(page->executions.size(), limit);
      EXPECT_FALSE(page->next && page->executions.size() != limit);
      for (const evidence::Execution& execution : page->executions)
        ids.push_back(execution.execution_id);
      after = page->next;
    } while (after);
    return ids;
  }

  std::optional<base::TempDir> dir_;
  base::FakeClock clock_;
  std::unique_ptr<EvidenceStore> store_;
  std::uint64_t sequence_ = 0;
};

TEST_P(EvidenceStoreContract, KeepsEveryFieldOfAnExecutionExactly) {
  const evidence::Execution full = Full();
  ASSERT_EQ(Apply({Seen(1, "full", full)}), 1U);
  EXPECT_EQ(store_->Get("org", "full"), full);
  Reopen();
  EXPECT_EQ(store_->Get("org", "full"), full);
  auto page = store_->List({.organisation_id = "org"}, std::nullopt, 10);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->executions.size(), 1U);
  EXPECT_EQ(page->executions[0], full);
  EXPECT_FALSE(page->next);
  // By bytes, not by what they look like.
  EXPECT_EQ(Ids({.organisation_id = "org", .users = {full.user}}, 10).size(), 1U);
  EXPECT_EQ(Ids({.organisation_id = "org", .native_id = full.native_id}, 10).size(), 1U);
  EXPECT_EQ(Ids({.organisation_id = "org", .users = {"caf"}}, 10).size(), 0U);
}

TEST_P(EvidenceStoreContract, AnEmptyExecutionStaysEmpty) {
  ASSERT_EQ(Apply({Seen(1, "bare", {})}), 1U);
  evidence::Execution expected;
  expected.execution_id = "bare";
  expected.compute_id = "c1";
  expected.source_type = evidence::SourceType::kSlurm;
  EXPECT_EQ(store_->Get("org", "bare"), expected);
  EXPECT_EQ(Ids({.organisation_id = "org", .users = {""}}, 10).size(), 1U);
}

TEST_P(EvidenceStoreContract, MergesObservations) {
  evidence::Execution queued;
  queued.status = evidence::ExecutionStatus::kQueued;
  queued.name = "train";
  queued.submitted_at = At(0);
  evidence::Execution ended;
  ended.status = evidence::ExecutionStatus::kSucceeded;
  ended.outcome = evidence::Outcome::kSuccess;
  ended.ended_at = At(9);
  ASSERT_EQ(Apply({Seen(1, "x", queued), Seen(2, "x", Running(5))}), 2U);  // within one batch
  ASSERT_EQ(Apply({Seen(3, "x", ended)}), 3U);                             // and across
  ASSERT_EQ(Apply({Seen(4, "x", Running(5))}), 4U);                        // late
  auto got = store_->Get("org", "x");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, evidence::ExecutionStatus::kSucceeded);
  EXPECT_EQ(got->name, "train");
  EXPECT_EQ(got->submitted_at, At(0));
  EXPECT_EQ(got->started_at, At(5));
  EXPECT_EQ(got->ended_at, At(9));
  EXPECT_EQ(
      Ids({.organisation_id = "org", .status = evidence::ExecutionStatus::kSucceeded}, 10).size(),
      1U);
  EXPECT_EQ(
      Ids({.organisation_id = "org", .status = evidence::ExecutionStatus::kRunning}, 10).size(),
      0U);
}

TEST_P(EvidenceStoreContract, KeepsTheExpectedStartWhileQueuedOnly) {
  evidence::Execution queued;
  queued.status = evidence::ExecutionStatus::kQueued;
  queued.expected_start_at = At(90 * 86'400);
  evidence::Execution running = Running(5);
  running.expected_start_at = At(1);
  ASSERT_EQ(Apply({Seen(1, "waits", queued), Seen(2, "runs", running)}), 2U);
  Reopen();
  EXPECT_EQ(store_->Get("org", "waits")->expected_start_at, At(90 * 86'400));
  EXPECT_EQ(store_->Get("org", "runs")->expected_start_at, std::nullopt);
}

TEST_P(EvidenceStoreContract, UnitesStepsOverObservations) {
  evidence::Execution running = Running(5);
  running.steps.resize(1);
  running.steps[0].id = "0";
  running.steps[0].status = evidence::ExecutionStatus::kRunning;
  running.steps[0].name = "train";
  evidence::Execution ended = running;
  ended.status = evidence::ExecutionStatus::kFailed;
  ended.steps[0].status = evidence::ExecutionStatus::kFailed;
  ended.steps[0].name.clear();
  ended.steps.push_back({.id = "batch"});
  ASSERT_EQ(Apply({Seen(1, "x", running)}), 1U);
  ASSERT_EQ(Apply({Seen(2, "x", ended)}), 2U);
  Reopen();
  auto got = store_->Get("org", "x");
  ASSERT_TRUE(got);
  ASSERT_EQ(got->steps.size(), 2U);
  EXPECT_EQ(got->steps[0].id, "batch");
  EXPECT_EQ(got->steps[1].name, "train");
  EXPECT_EQ(got->steps[1].status, evidence::ExecutionStatus::kFailed);
}

TEST_P(EvidenceStoreContract, AppliesASequenceOnce) {
  EXPECT_EQ(store_->Watermark("c1", "s"), 0U);
  ASSERT_EQ(Apply({Seen(1, "a", Running(1)), Seen(2, "b", Running(2))}), 2U);
  EXPECT_EQ(store_->Watermark("c1", "s"), 2U);
  evidence::Execution renamed = Running(1);
  renamed.name = "again";
  ASSERT_EQ(Apply({Seen(1, "a", renamed), Seen(2, "b", renamed), Seen(3, "c", Running(3))}), 3U);
  EXPECT_EQ(store_->Get("org", "a")->name, "");
  EXPECT_TRUE(store_->Get("org", "c"));
  ASSERT_EQ(Apply({Seen(2, "a", renamed)}), 3U);
  EXPECT_EQ(store_->Watermark("c1", "other"), 0U);
  EXPECT_EQ(store_->Watermark("c2", "s"), 0U);
  EvidenceChange nothing{.sequence = 9, .execution_id = "a"};  // samples: another store's
  ASSERT_EQ(Apply({nothing}), 9U);
  ASSERT_EQ(Apply({}), 9U);
  Reopen();
  EXPECT_EQ(store_->Watermark("c1", "s"), 9U);
}

TEST_P(EvidenceStoreContract, AFailingBatchChangesNothing) {
  Put("theirs", Running(1), "c2", "org2");
  auto refused = Apply({Seen(1, "mine", Running(1)), Seen(2, "theirs", Running(2))});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "execution.foreign");
  EXPECT_FALSE(store_->Get("org", "mine"));
  EXPECT_EQ(store_->Watermark("c1", "s"), 0U);
  EXPECT_EQ(store_->Get("org2", "theirs")->started_at, At(1));
}

TEST_P(EvidenceStoreContract, OrganisationsDoNotSeeEachOther) {
  Put("one", Running(1), "c1", "org");
  Put("two", Running(2), "c2", "org2");
  EXPECT_EQ(Ids({.organisation_id = "org"}, 10), (std::vector<std::string>{"one"}));
  EXPECT_EQ(Ids({.organisation_id = "org2"}, 10), (std::vector<std::string>{"two"}));
  EXPECT_EQ(Ids({.organisation_id = "org2", .compute_id = "c1"}, 10).size(), 0U);
  EXPECT_EQ(store_->Get("org2", "one").error().reason, "execution.not_found");
  EXPECT_EQ(store_->Get("org", "none").error().code, base::Code::kNotFound);
}

TEST_P(EvidenceStoreContract, ListsNewestFirstUnderEveryFilter) {
  struct Row {
    std::string id;
    std::int64_t sort = 0;
    bool started = false;
    evidence::Execution execution;
    std::string compute;
  };
  std::mt19937_64 random(21);
  std::vector<Row> rows;
  const auto pick = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int i = 0; i < 300; ++i) {
    Row row{.id = "id-" + std::to_string(pick(100'000)) + "-" + std::to_string(i),
            .compute = "c" + std::to_string(pick(3))};
    evidence::Execution& e = row.execution;
    e.status = static_cast<evidence::ExecutionStatus>(1 + pick(6));
    e.outcome = static_cast<evidence::Outcome>(1 + pick(6));
    e.source_type = static_cast<evidence::SourceType>(1 + pick(4));
    e.user = "user" + std::to_string(pick(5));
    e.native_id = std::to_string(pick(20));
    row.sort = pick(40);  // many equal times
    row.started = pick(3) > 0;
    (row.started ? e.started_at : e.submitted_at) = At(row.sort);
    rows.push_back(row);
    Put(row.id, row.execution, row.compute);
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.sort, a.id) > std::tie(b.sort, b.id);
  });

  for (int round = 0; round < 120; ++round) {
    ExecutionFilter filter{.organisation_id = "org"};
    if (pick(4) == 0) filter.status = static_cast<evidence::ExecutionStatus>(1 + pick(6));
    if (pick(4) == 0) filter.outcome = static_cast<evidence::Outcome>(1 + pick(6));
    if (pick(4) == 0) filter.compute_id = "c" + std::to_string(pick(3));
    if (pick(4) == 0) filter.source_type = static_cast<evidence::SourceType>(1 + pick(4));
    if (pick(6) == 0) filter.native_id = std::to_string(pick(20));
    for (auto users = pick(6); users > 3; --users)
      filter.users.push_back("user" + std::to_string(pick(5)));
    if (pick(4) == 0) filter.started_after = At(pick(40));
    if (pick(4) == 0) filter.started_before = At(pick(40));
    std::vector<std::string> expected;
    for (const Row& row : rows) {
      const evidence::Execution& e = row.execution;
      const bool in =
          (!filter.status || e.status == *filter.status) &&
          (!filter.outcome || e.outcome == *filter.outcome) &&
          (filter.compute_id.empty() || row.compute == filter.compute_id) &&
          (!filter.source_type || e.source_type == *filter.source_type) &&
          (filter.native_id.empty() || e.native_id == filter.native_id) &&
          (filter.users.empty() ||
           std::find(filter.users.begin(), filter.users.end(), e.user) != filter.users.end()) &&
          (!filter.started_after || (e.started_at && *e.started_at >= *filter.started_after)) &&
          (!filter.started_before || (e.started_at && *e.started_at < *filter.started_before));
      if (in) expected.push_back(row.id);
    }
    EXPECT_EQ(Ids(filter, static_cast<std::size_t>(1 + pick(50))), expected) << "round " << round;
  }
  EXPECT_EQ(Ids({.organisation_id = "org"}, 300).size(),
            300U);  // exactly full: no empty page after it
}

TEST_P(EvidenceStoreContract, WithoutTimesTheFirstSightCounts) {
  evidence::Execution bare;
  bare.status = evidence::ExecutionStatus::kRunning;
  clock_.JumpWall(At(100) - clock_.Now());
  Put("seen-at-100", bare);
  clock_.JumpWall(std::chrono::seconds(100));
  Put("started-at-150", Running(150));
  Put("seen-at-100", bare);  // seeing it again does not move it
  EXPECT_EQ(Ids({.organisation_id = "org"}, 10),
            (std::vector<std::string>{"started-at-150", "seen-at-100"}));
  Put("seen-at-100", Running(180));
  EXPECT_EQ(Ids({.organisation_id = "org"}, 10),
            (std::vector<std::string>{"seen-at-100", "started-at-150"}));
}

TEST_P(EvidenceStoreContract, AnOlderLogTailNeverReplacesANewerOne) {
  const auto tail = [](std::uint64_t sequence, const std::string& stream, std::uint64_t total,
                       const std::string& blob, const std::string& error) {
    return EvidenceChange{.sequence = sequence,
                          .execution_id = "x",
                          .log_tail = LogTailRow{.stream = stream,
                                                 .data_blob = blob,
                                                 .offset = total / 2,
                                                 .total_bytes = total,
                                                 .first_error_blob = error,
                                                 .first_error_offset = error.empty() ? 0 : 7U,
                                                 .redactions = 3}};
  };
  ASSERT_EQ(Apply({tail(1, "stdout", 100, "b1", ""), tail(2, "stderr", 5, "b2", "e2")}), 2U);
  ASSERT_EQ(Apply({tail(3, "stdout", 90, "old", "")}), 3U);
  ASSERT_EQ(Apply({tail(4, "stderr", 50, "b3", "")}), 4U);
  auto tails = store_->LogTails("x");
  ASSERT_TRUE(tails);
  ASSERT_EQ(tails->size(), 2U);
  const LogTailRow& err = tails->at(0);
  EXPECT_EQ(err.stream, "stderr");
  EXPECT_EQ(err.data_blob, "b3");
  EXPECT_EQ(err.offset, 25U);
  EXPECT_EQ(err.total_bytes, 50U);
  EXPECT_EQ(err.first_error_blob, "e2");  // stays known
  EXPECT_EQ(err.first_error_offset, 7U);
  EXPECT_EQ(err.redactions, 3U);
  const LogTailRow& out = tails->at(1);
  EXPECT_EQ(out.stream, "stdout");
  EXPECT_EQ(out.data_blob, "b1");
  EXPECT_EQ(out.total_bytes, 100U);
  EXPECT_EQ(out.first_error_blob, "");
  EXPECT_TRUE(store_->LogTails("y")->empty());
  for (const char* blob : {"b1", "b3", "e2"}) EXPECT_EQ(store_->BlobReferenced(blob), true) << blob;
  for (const char* blob : {"b2", "old", ""}) EXPECT_EQ(store_->BlobReferenced(blob), false) << blob;
}

TEST_P(EvidenceStoreContract, ABundleIsReplacedAsAWhole) {
  EXPECT_EQ(store_->Bundle("x")->has_value(), false);
  const BundleRow first{.bundle_hash = "h1",
                        .files = {{.path = "b/\xFF.py",
                                   .role = "script",
                                   .blob = "f1",
                                   .content_hash = "c1",
                                   .size_bytes = 10,
                                   .redactions = 1},
                                  {.path = "a.py",
                                   .role = "import",
                                   .blob = "f2",
                                   .content_hash = "c2",
                                   .size_bytes = 0,
                                   .redactions = 0}},
                        .skipped = {{"big", "too_large"}, {"gone", "missing"}}};
  const BundleRow second{.bundle_hash = "h2",
                         .files = {{.path = "c.py",
                                    .role = "script",
                                    .blob = "f3",
                                    .content_hash = "c3",
                                    .size_bytes = 1ULL << 40,
                                    .redactions = 2}},
                         .skipped = {}};
  for (const BundleRow* bundle : {&first, &second}) {
    EvidenceChange change{.sequence = ++sequence_, .execution_id = "x", .bundle = *bundle};
    ASSERT_EQ(Apply({change}), sequence_);
    auto got = store_->Bundle("x");
    ASSERT_TRUE(got && got->has_value());
    EXPECT_EQ((*got)->bundle_hash, bundle->bundle_hash);
    ASSERT_EQ((*got)->files.size(), bundle->files.size());
    for (std::size_t i = 0; i < bundle->files.size(); ++i) {
      const BundleFileRow& a = (*got)->files[i];
      const BundleFileRow& b = bundle->files[i];
      EXPECT_EQ(std::tie(a.path, a.role, a.blob, a.content_hash, a.size_bytes, a.redactions),
                std::tie(b.path, b.role, b.blob, b.content_hash, b.size_bytes, b.redactions));
    }
    ASSERT_EQ((*got)->skipped.size(), bundle->skipped.size());
    for (std::size_t i = 0; i < bundle->skipped.size(); ++i) {
      EXPECT_EQ((*got)->skipped[i].path, bundle->skipped[i].path);
      EXPECT_EQ((*got)->skipped[i].reason, bundle->skipped[i].reason);
    }
  }
  EXPECT_EQ(store_->BlobReferenced("f1"), false);
  EXPECT_EQ(store_->BlobReferenced("f3"), true);
}

TEST_P(EvidenceStoreContract, KeepsTheLatestClusterStateOfEachCompute) {
  evidence::ClusterState state;
  state.cluster = "lab";
  state.observed_at = At(9);
  state.nodes_observed_at = At(8);
  state.partitions_observed_at = At(7);
  state.pending_jobs = 3;
  state.running_jobs = 0;
  state.pending_by_reason = {{"Priority", 2}, {"Resources", 1}};
  state.partitions = {{.name = "gpu",
                       .state = "UP",
                       .is_default = true,
                       .max_time_s = 3600,
                       .default_time_s = {},
                       .nodes_total = 2,
                       .nodes_by_state = {{"IDLE", 2}},
                       .cpus_total = 8,
                       .cpus_allocated = 1,
                       .cpus_idle = 7,
                       .cpus_other = 0,
                       .memory_total_bytes = 1ULL << 40,
                       .memory_allocated_bytes = 5,
                       .gpus = {{"a100", 8, 0}, {"", 1, {}}},
                       .pending_jobs = 3,
                       .running_jobs = 0}};
  state.nodes = {{.name = "n1",
                  .state = "MIXED",
                  .flags = {"DRAIN"},
                  .reason = "fan",
                  .cpus_total = 4,
                  .cpus_allocated = 1,
                  .memory_total_bytes = 9,
                  .memory_allocated_bytes = 8,
                  .memory_free_bytes = 7,
                  .gpus = {{"a100", 4, 1}},
                  .partitions = {"gpu", "all"},
                  .features = {"ib"}},
                 {.name = "n2"}};
  evidence::PendingJob job;
  job.key = {evidence::SourceType::kSlurm, "lab/7@1"};
  job.native_id = "7_[0-9%2]";
  job.name = "train";
  job.user = "ada";
  job.account = "physics";
  job.partition = "gpu,all";
  job.reason = "Priority";
  job.submitted_at = At(1);
  job.eligible_at = At(2);
  job.expected_start_at = At(90 * 86'400);
  job.priority = 4294901757.5;
  job.requested.gpu_count = 4;
  job.requested.tres = "cpu=1";
  state.pending = {job, {}};

  ASSERT_TRUE(store_->ClusterState("org", "c1"));
  EXPECT_FALSE(store_->ClusterState("org", "c1")->has_value());
  ASSERT_TRUE(
      store_->PutClusterState("org", "c1", {.cluster = "old", .observed_at = At(9)}, At(1)));
  ASSERT_TRUE(store_->PutClusterState("org", "c1", state, At(12)));
  ASSERT_TRUE(
      store_->PutClusterState("org", "c1", {.cluster = "late", .observed_at = At(9)}, At(11)));
  ASSERT_TRUE(
      store_->PutClusterState("org2", "c1", {.cluster = "foreign", .observed_at = At(9)}, At(13)));
  Reopen();
  const auto found = store_->ClusterState("org", "c1");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->reported_at, At(12));
  EXPECT_EQ((*found)->state, state);
  EXPECT_EQ((*store_->ClusterState("org2", "c1"))->state.cluster, "foreign");
  EXPECT_FALSE(store_->ClusterState("org", "c2")->has_value());
}

TEST_P(EvidenceStoreContract, KeepsTheLatestHealthOfEachNode) {
  const auto report = [](const std::string& node, const std::string& reason) {
    return evidence::HealthReport{.daemon_version = "0.1.0",
                                  .node = node,
                                  .started_at = At(0),
                                  .rows = {{.collector = "gpu",
                                            .status = evidence::HealthStatus::kDegraded,
                                            .reason = reason,
                                            .message = "says why",
                                            .checked_at = At(1),
                                            .figures = {{"dropped", 2.5}}}}};
  };
  ASSERT_TRUE(store_->PutHealth("org", "c1", report("n2", "first"), At(10)));
  ASSERT_TRUE(store_->PutHealth("org", "c1", report("n1", "only"), At(11)));
  ASSERT_TRUE(store_->PutHealth("org", "c1", report("n2", "second"), At(12)));
  ASSERT_TRUE(store_->PutHealth("org", "c1", report("n2", "late"), At(11)));
  ASSERT_TRUE(store_->PutHealth("org2", "c1", report("n1", "foreign"), At(12)));
  Reopen();
  auto health = store_->Health("org", "c1");
  ASSERT_TRUE(health) << health.error().message;
  ASSERT_EQ(health->size(), 2U);
  EXPECT_EQ(health->at(0).report.node, "n1");
  EXPECT_EQ(health->at(0).reported_at, At(11));
  EXPECT_EQ(health->at(1).report.node, "n2");
  EXPECT_EQ(health->at(1).reported_at, At(12));
  const evidence::HealthRow& row = health->at(1).report.rows.at(0);
  EXPECT_EQ(row.reason, "second");
  EXPECT_EQ(row.status, evidence::HealthStatus::kDegraded);
  EXPECT_EQ(row.checked_at, At(1));
  EXPECT_EQ(row.figures.at("dropped"), 2.5);
  EXPECT_TRUE(store_->Health("org", "c2")->empty());
}

TEST_P(EvidenceStoreContract, DropsWhatEndedLongAgoWithAllThatHangsOnIt) {
  clock_.JumpWall(At(0) - clock_.Now());
  const auto ended = [](std::int64_t at) {
    evidence::Execution e = Running(at - 1);
    e.status = evidence::ExecutionStatus::kSucceeded;
    e.ended_at = At(at);
    return e;
  };
  for (int i = 0; i < 5; ++i) Put("old" + std::to_string(i), ended(10 + i));
  Put("young", ended(1000));
  Put("running", Running(1));
  for (const char* id : {"old0", "young", "orphan"}) {
    EvidenceChange tail{
        .sequence = ++sequence_,
        .execution_id = id,
        .log_tail = LogTailRow{.stream = "stdout", .data_blob = std::string("log-") + id}};
    EvidenceChange bundle{
        .sequence = ++sequence_,
        .execution_id = id,
        .bundle = BundleRow{.bundle_hash = "h",
                            .files = {{.path = "f", .blob = std::string("file-") + id}},
                            .skipped = {{"s", "r"}}}};
    const EvidenceChange both[] = {tail, bundle};
    ASSERT_EQ(store_->Apply("org", "c1", "put", both), sequence_);
  }
  EXPECT_EQ(store_->DropExecutionsBefore(At(0), 100), 0U);
  EXPECT_EQ(store_->DropExecutionsBefore(At(500), 2), 2U);
  std::size_t steps = 0;
  for (std::size_t gone = 1; gone > 0; ++steps) {
    auto dropped = store_->DropExecutionsBefore(At(500), 2);
    ASSERT_TRUE(dropped);
    gone = *dropped;
    ASSERT_LE(gone, 2U);
    ASSERT_LT(steps, 20U);
  }
  EXPECT_EQ(Ids({.organisation_id = "org"}, 10), (std::vector<std::string>{"young", "running"}));
  EXPECT_TRUE(store_->LogTails("old0")->empty());
  EXPECT_FALSE(store_->Bundle("old0")->has_value());
  for (const char* id : {"old0", "orphan"}) {
    EXPECT_EQ(store_->BlobReferenced(std::string("log-") + id), false);
    EXPECT_EQ(store_->BlobReferenced(std::string("file-") + id), false);
  }
  EXPECT_EQ(store_->BlobReferenced("log-young"), true);
  EXPECT_EQ(store_->BlobReferenced("file-young"), true);
}

TEST_P(EvidenceStoreContract, ARunThatIsOverWithoutAnEndIsDroppedToo) {
  clock_.JumpWall(At(50) - clock_.Now());
  evidence::Execution lost = Running(1);
  lost.status = evidence::ExecutionStatus::kFailed;
  Put("lost", lost);
  EXPECT_EQ(store_->DropExecutionsBefore(At(50), 10), 0U);
  EXPECT_EQ(store_->DropExecutionsBefore(At(51), 10), 1U);
}

TEST_P(EvidenceStoreContract, ReadersSeeWholeBatchesWhileOneWrites) {
  std::atomic<bool> done{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      while (!done) {
        auto page = store_->List({.organisation_id = "org"}, std::nullopt, 1000);
        if (!page || page->executions.size() % 3 != 0) ++failures;
      }
    });
  }
  for (std::uint64_t i = 0; i < 60; ++i) {
    std::vector<EvidenceChange> changes;
    for (std::uint64_t k = 1; k <= 3; ++k)
      changes.push_back(Seen(3 * i + k, std::to_string(3 * i + k), Running(1)));
    EXPECT_EQ(Apply(changes), 3 * i + 3);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(failures, 0);
}

TEST_P(EvidenceStoreContract, WritersAtOnceLoseNothing) {
  std::vector<std::thread> writers;
  std::atomic<int> failures{0};
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&, w] {
      for (std::uint64_t i = 1; i <= 40; ++i) {
        if (Apply({Seen(i, std::to_string(w) + "/" + std::to_string(i), Running(1))},
                  "s" + std::to_string(w)) != i)
          ++failures;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Ids({.organisation_id = "org"}, 1000).size(), 120U);
}

}  // namespace expanse::store
