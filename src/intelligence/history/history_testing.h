// A world for the tests of the history index: real stores in a temporary directory, and words for
// putting jobs into them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/files.h"
#include "base/metrics.h"
#include "base/time.h"
#include "intelligence/history/indexed_history.h"
#include "store/blobs/directory_blob_store.h"
#include "store/records/sqlite_evidence_store.h"
#include "store/series/sqlite_series_store.h"
#include "store/sql/fault_testing.h"

namespace expanse::intelligence::history {

struct TestFile {
  std::string path;
  std::string role;
  std::string data;
  std::string before_redaction = {};  // empty: there were no secrets
};

// A run that succeeded, with a script.
struct TestJob {
  std::string id;
  std::string organisation = "org";
  std::string compute = "c1";
  std::string user = "mara";
  std::string name = "train";
  std::vector<std::string> command = {"/home/mara/job.sh"};
  evidence::ExecutionStatus status = evidence::ExecutionStatus::kSucceeded;
  evidence::Outcome outcome = evidence::Outcome::kSuccess;
  double memory_gib = 4;
  std::int64_t minutes = 10;
  std::vector<TestFile> files = {};
  std::map<std::string, std::string> labels = {};
  std::string native_id = {};
};

class HistoryWorld : public ::testing::Test {
 protected:
  void SetUp() override {
    auto dir = store::StoreDirectory();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
    const auto path = [&](const char* name) { return base::JoinPath(dir_->path(), name); };
    auto records = store::SqliteEvidenceStore::Open({.path = path("records.db")}, clock_);
    ASSERT_TRUE(records) << records.error().message;
    records_ = std::move(*records);
    auto series = store::SqliteSeriesStore::Open({.path = path("series.db")});
    ASSERT_TRUE(series) << series.error().message;
    series_ = std::move(*series);
    auto blobs = store::DirectoryBlobStore::Open(path("blobs"), clock_);
    ASSERT_TRUE(blobs) << blobs.error().message;
    blobs_ = std::move(*blobs);
    Open();
  }
  void Open() {
    history_.reset();
    auto opened = IndexedHistory::Open(
        {.path = base::JoinPath(dir_->path(), "history.db"), .poll = std::chrono::milliseconds(20)},
        {.records = *records_, .series = *series_, .blobs = *blobs_}, clock_, metrics_);
    ASSERT_TRUE(opened) << opened.error().message;
    history_ = std::move(*opened);
  }

  // Every job begins an hour after the one before, long before now.
  evidence::Execution ExecutionOf(const TestJob& job) {
    evidence::Execution e;
    e.native_id = job.native_id.empty() ? "job-" + job.id : job.native_id;
    e.name = job.name;
    e.user = job.user;
    e.command = job.command;
    e.labels = job.labels;
    e.status = job.status;
    e.outcome = job.outcome;
    e.submitted_at = start_ + std::chrono::hours(++hour_);
    e.started_at = *e.submitted_at + std::chrono::minutes(1);
    if (evidence::IsTerminal(job.status))
      e.ended_at = *e.started_at + std::chrono::minutes(job.minutes);
    e.requested = {.cpu_cores = 4, .memory_bytes = 16ULL << 30, .walltime_s = 3600};
    e.used.memory_peak_bytes = static_cast<std::uint64_t>(job.memory_gib * (1ULL << 30));
    e.used.memory_peak_basis = "cgroup_peak";
    e.used.cpu_s = 60.0 * static_cast<double>(job.minutes) * 2;
    return e;
  }
  store::BundleRow BundleOf(const TestJob& job) {
    store::BundleRow row;
    std::string all;
    for (const TestFile& file : job.files) {
      auto blob = blobs_->Put(file.data);
      EXPECT_TRUE(blob);
      const std::string& before = file.before_redaction.empty() ? file.data : file.before_redaction;
      row.files.push_back({.path = file.path,
                           .role = file.role,
                           .blob = blob ? *blob : "",
                           .content_hash = base::Sha256Hex(before),
                           .size_bytes = file.data.size(),
                           .redactions = file.before_redaction.empty() ? 0U : 1U});
      all += file.path + row.files.back().content_hash;
    }
    row.bundle_hash = "sha256:" + base::Sha256Hex(all);
    return row;
  }
  store::EvidenceChange Change(const TestJob& job) {
    return {.sequence = ++sequence_,
            .execution_id = job.id,
            .source_type = evidence::SourceType::kSlurm};
  }
  void Apply(const TestJob& job, const std::vector<store::EvidenceChange>& changes) {
    const auto applied = records_->Apply(job.organisation, job.compute, "s", changes);
    ASSERT_TRUE(applied) << applied.error().message;
  }
  void Put(const TestJob& job) { Put(job, ExecutionOf(job)); }
  void Put(const TestJob& job, const evidence::Execution& execution) {
    std::vector<store::EvidenceChange> changes = {Change(job)};
    changes[0].execution = execution;
    if (!job.files.empty()) {
      changes.push_back(Change(job));
      changes[1].bundle = BundleOf(job);
    }
    Apply(job, changes);
  }
  void CatchUp() {
    const auto caught = history_->CatchUp();
    ASSERT_TRUE(caught) << caught.error().message;
  }

  static Fingerprint Print(const std::vector<TestFile>& files, std::size_t entry = 0) {
    std::vector<SourceText> sources;
    for (const TestFile& file : files)
      sources.push_back({.path = file.path, .role = file.role, .data = file.data});
    return MakeFingerprint(sources, entry);
  }
  static Query Ask(const std::vector<TestFile>& files) {
    return {.organisation_id = "org", .compute_id = "", .fingerprint = Print(files)};
  }
  Found Find(const Query& query) {
    auto found = history_->Find(query);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : Found{};
  }
  static std::vector<std::string> Ids(const Found& found) {
    std::vector<std::string> ids;
    for (const predict::Run& run : found.runs) ids.push_back(run.execution_id);
    return ids;
  }

  base::FakeClock clock_;
  base::MetricRegistry metrics_;
  const base::WallTime start_{std::chrono::seconds(1'750'000'000)};
  int hour_ = 0;
  std::uint64_t sequence_ = 0;
  std::optional<base::TempDir> dir_;
  std::unique_ptr<store::SqliteEvidenceStore> records_;
  std::unique_ptr<store::SqliteSeriesStore> series_;
  std::unique_ptr<store::DirectoryBlobStore> blobs_;
  std::unique_ptr<IndexedHistory> history_;
};

}  // namespace expanse::intelligence::history
