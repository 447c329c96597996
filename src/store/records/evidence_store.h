// Records of the data plane: executions, log tails' and bundles' manifests, ingest watermarks,
// health.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "evidence/cluster_state.h"
#include "evidence/execution.h"
#include "evidence/records.h"

namespace expanse::store {

// A log tail whose bytes are in the blob store. Empty blob names: nothing there.
struct LogTailRow {
  std::string stream;
  std::string data_blob;
  std::uint64_t offset = 0;
  std::uint64_t total_bytes = 0;
  std::string first_error_blob;
  std::uint64_t first_error_offset = 0;
  std::uint32_t redactions = 0;
};

struct BundleFileRow {
  std::string path;
  std::string role;
  std::string blob;
  std::string content_hash;
  std::uint64_t size_bytes = 0;
  std::uint32_t redactions = 0;
};

struct BundleRow {
  std::string bundle_hash;
  std::vector<BundleFileRow> files;
  std::vector<evidence::SkippedFile> skipped;
};

// One change, in stream order. Exactly one of the optionals is set; none for a record whose effect
// lies in another store (samples), which still moves the watermark.
struct EvidenceChange {
  std::uint64_t sequence = 0;
  std::string execution_id;
  evidence::SourceType source_type = evidence::SourceType::kUnspecified;
  std::optional<evidence::Execution> execution;
  std::optional<LogTailRow> log_tail;
  std::optional<BundleRow> bundle;
};

struct ExecutionFilter {
  std::string organisation_id;  // always applied
  std::optional<evidence::ExecutionStatus> status;
  std::optional<evidence::Outcome> outcome;
  std::vector<std::string> users;  // any of; empty: all
  std::string compute_id;          // empty: all
  std::optional<evidence::SourceType> source_type;
  std::string native_id;                         // empty: all
  std::optional<base::WallTime> started_after;   // inclusive
  std::optional<base::WallTime> started_before;  // exclusive
};

// A place in the list: executions sort by (sort time, execution id), newest first. The sort time is
// the start, else the submission, else when the row was first seen.
struct ExecutionCursor {
  std::int64_t sort_micros = 0;
  std::string execution_id;
};

struct ExecutionPage {
  std::vector<evidence::Execution> executions;
  std::optional<ExecutionCursor> next;  // absent on the last page
};

struct NodeHealth {
  evidence::HealthReport report;
  base::WallTime reported_at{};
};

struct ReportedClusterState {
  evidence::ClusterState state;
  base::WallTime reported_at{};
};

// Thread-safe. Every backend passes evidence_store_contract.h.
class EvidenceStore {
 public:
  virtual ~EvidenceStore() = default;

  // The highest sequence of the stream that was applied; 0 for a stream never seen.
  virtual base::Result<std::uint64_t> Watermark(std::string_view compute_id,
                                                std::string_view stream_id) = 0;
  // Applies the changes above the stream's watermark in one transaction and returns the new
  // watermark; durable on return. Executions are merged with evidence::Merge. Changes at or below
  // the watermark are skipped: they were applied before.
  virtual base::Result<std::uint64_t> Apply(std::string_view organisation_id,
                                            std::string_view compute_id, std::string_view stream_id,
                                            std::span<const EvidenceChange> changes) = 0;

  // At most `limit`; fewer also where executions are very large, then with `next`.
  virtual base::Result<ExecutionPage> List(const ExecutionFilter& filter,
                                           const std::optional<ExecutionCursor>& after,
                                           std::size_t limit) = 0;
  // Fail with execution.not_found; also for an execution of another organisation.
  virtual base::Result<evidence::Execution> Get(std::string_view organisation_id,
                                                std::string_view execution_id) = 0;

  virtual base::Result<std::vector<LogTailRow>> LogTails(std::string_view execution_id) = 0;
  virtual base::Result<std::optional<BundleRow>> Bundle(std::string_view execution_id) = 0;

  // A backend bounds the nodes of a compute: where there are too many, it forgets the one that has
  // been silent for longest.
  virtual base::Status PutHealth(std::string_view organisation_id, std::string_view compute_id,
                                 const evidence::HealthReport& report, base::WallTime now) = 0;
  // By node; where that is too much for one answer, the nodes heard from last.
  virtual base::Result<std::vector<NodeHealth>> Health(std::string_view organisation_id,
                                                       std::string_view compute_id) = 0;

  // Replaces the one snapshot of a compute, unless that was reported later.
  virtual base::Status PutClusterState(std::string_view organisation_id,
                                       std::string_view compute_id,
                                       const evidence::ClusterState& state, base::WallTime now) = 0;
  // Absent where none was ever reported.
  virtual base::Result<std::optional<ReportedClusterState>> ClusterState(
      std::string_view organisation_id, std::string_view compute_id) = 0;

  // Retention. Removes executions that ended before `before` with all that hangs on them, at most
  // `limit` in one short transaction; returns how many. Call again until 0.
  virtual base::Result<std::size_t> DropExecutionsBefore(base::WallTime before,
                                                         std::size_t limit) = 0;
  // Whether any record names this blob.
  virtual base::Result<bool> BlobReferenced(std::string_view blob) = 0;
};

}  // namespace expanse::store
