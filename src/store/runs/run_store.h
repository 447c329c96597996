// Runs of the intelligence plane: questions that were asked, their answers, the artefacts made for
// them, and the queue of those that wait. What was asked and answered are bytes of the plane's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/runs/diagnosis_queue.h"
#include "store/runs/label_store.h"

namespace expanse::store {

// The numbers are stored.
enum class RunKind : std::uint8_t { kAnalyse = 1, kDiagnose = 2 };
enum class RunStatus : std::uint8_t { kQueued = 1, kRunning = 2, kSucceeded = 3, kFailed = 4 };

// The user of runs that nobody asked for; no identity has this id.
inline constexpr std::string_view kSystemUser = "system";

struct RunRow {
  std::string run_id;  // a UUID, version 7
  std::string organisation_id;
  std::string user_id;
  RunKind kind = RunKind::kAnalyse;
  RunStatus status = RunStatus::kQueued;
  std::string target;  // what it is about: any bytes
  std::string job_name;
  std::string compute_id;  // empty: all
  base::WallTime created_at{};
  std::optional<base::WallTime> finished_at;
  std::string error;  // of a failed one
  std::string error_reason;
  std::string cache_key;  // equal for equal questions over equal history; empty: never found again
  std::string request;    // what was asked, until the run is over
  std::string answer;
};

// The numbers are stored.
enum class RunArtifactType : std::uint8_t { kUnifiedDiff = 1 };

struct RunArtifactRow {
  std::string artifact_id;  // a UUID, version 7
  std::string run_id;
  RunArtifactType type = RunArtifactType::kUnifiedDiff;
  std::string content_hash;  // "sha256:…" of `data`
  std::string source_file;   // what the diff is against, as the user named it
  std::string source_hash;   // "sha256:…" of its bytes
  std::string data;
  base::WallTime created_at{};
};

// How a run ended.
struct RunOutcome {
  RunStatus status = RunStatus::kSucceeded;  // or kFailed
  base::WallTime finished_at{};
  std::string job_name;
  std::string error;
  std::string error_reason;
  std::string cache_key;
  std::string answer;
  std::vector<RunArtifactRow> artifacts;
};

// Whose runs a caller may see.
struct RunScope {
  std::string organisation_id;         // always applied
  std::optional<std::string> user_id;  // absent: everybody's
};

struct RunFilter {
  RunScope scope;
  std::optional<RunKind> kind;
  std::string compute_id;  // empty: all
};

// A place in the list: runs sort by (created, id), newest first.
struct RunCursor {
  std::int64_t created_micros = 0;
  std::string run_id;
};

struct RunPage {
  std::vector<RunRow> runs;       // without request and answer
  std::optional<RunCursor> next;  // absent on the last page
};

// How many runs of a user the queue holds.
struct QueueBounds {
  std::size_t per_user = 0;
  std::size_t in_all = 0;
};

// Thread-safe. Every backend passes run_store_contract.h. What is written is durable on return.
class RunStore {
 public:
  virtual ~RunStore() = default;

  // Adds a run that is over (or, in tests, in any state) with its artefacts. Fails with
  // already_exists where the id is taken.
  virtual base::Status Add(const RunRow& run, const std::vector<RunArtifactRow>& artifacts) = 0;
  // Adds a run to the queue (status kQueued). Fails with resource_exhausted: run.queue_user where
  // the user has as many waiting as `bounds` says, run.queue_full where all have.
  virtual base::Status Enqueue(const RunRow& run, const QueueBounds& bounds) = 0;
  // Takes the run that has waited longest, of those whose user has fewer than `per_user` running:
  // it is kRunning from now on. Nothing where there is none.
  virtual base::Result<std::optional<RunRow>> TakeQueued(std::size_t per_user) = 0;
  // Ends a run that is running. Fails with run.not_running where it is not (any more).
  virtual base::Status Finish(std::string_view run_id, const RunOutcome& outcome) = 0;
  // Ends every running one as failed, for the start after a crash; returns how many. One process
  // works on the queue of a store.
  virtual base::Result<std::size_t> FailRunning(base::WallTime now, std::string_view error,
                                                std::string_view error_reason) = 0;
  virtual base::Result<std::size_t> CountQueued() = 0;

  // Fail with run.not_found; also for a run outside the scope.
  virtual base::Result<RunRow> Get(const RunScope& scope, std::string_view run_id) = 0;
  // At most `limit` (from 1).
  virtual base::Result<RunPage> List(const RunFilter& filter, const std::optional<RunCursor>& after,
                                     std::size_t limit) = 0;
  // The newest of the user's runs that succeeded with this key.
  virtual base::Result<std::optional<RunRow>> FindCached(std::string_view organisation_id,
                                                         std::string_view user_id,
                                                         std::string_view cache_key) = 0;
  // Fail with artifact.not_found; also for one whose run is outside the scope.
  virtual base::Result<RunArtifactRow> GetArtifact(const RunScope& scope,
                                                   std::string_view artifact_id) = 0;

  // Retention. Both remove runs that are over with their artefacts, at most `limit` in one short
  // transaction, and return how many. Call again until 0.
  virtual base::Result<std::size_t> DropBefore(base::WallTime finished_before,
                                               std::size_t limit) = 0;
  // The oldest of each user beyond the newest `keep` that are over; the system's are left alone.
  virtual base::Result<std::size_t> DropBeyond(std::size_t keep, std::size_t limit) = 0;
  // The system's oldest of each organisation beyond the newest `keep` that are over.
  virtual base::Result<std::size_t> DropSystemBeyond(std::size_t keep, std::size_t limit) = 0;

  // Of the same database; live as long as the store.
  virtual LabelStore& labels() = 0;
  virtual DiagnosisQueue& diagnoses() = 0;
};

}  // namespace expanse::store
