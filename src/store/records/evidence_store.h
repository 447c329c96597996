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

// An execution that changed: its record or its bundle. `change` is the number of the last change.
struct ChangedExecution {
  std::uint64_t change = 0;
  std::string organisation_id;
  std::string execution_id;
  bool removed = false;           // by retention; then there is no execution
  evidence::Execution execution;  // as it is now
};

// How far a reader of the feed has come.
struct FeedPlace {
  std::uint64_t change = 0;  // the last change that it knows; 0: none yet
  // The last change there was when it began: what was removed before, it never saw.
  std::uint64_t began = 0;
  bool operator==(const FeedPlace&) const = default;
};

struct ChangePage {
  std::vector<ChangedExecution> changes;  // ascending by change
  FeedPlace next;                         // ask on from here
  // Removals after the place that was asked from are no longer known: whoever keeps a copy forgets
  // all of it and begins again. Then there are no changes.
  bool restart = false;
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

  // The change feed, over all organisations: what changed after `after` ({}: from the start), at
  // most `limit` and fewer where executions are very large. Each execution is there once, at its
  // last change. Numbers grow in the order in which changes become visible, so nothing is missed by
  // reading on from `next`; a page without changes means that there is nothing newer. Executions
  // that are known only by what hangs on them (a tail, a bundle) are not in it yet.
  virtual base::Result<ChangePage> Changed(const FeedPlace& after, std::size_t limit) = 0;

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
