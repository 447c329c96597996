// The embedded evidence store: one SQLite file with the records of all computes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/records/evidence_store.h"

namespace expanse::store {

struct SqliteEvidenceOptions {
  std::string path;  // of the file; its directory exists
  std::size_t readers = 4;
  // Node names come from daemons. Of a compute with more, the node silent for longest is forgotten.
  std::size_t max_health_nodes = 10'000;
  // Removals that the change feed can still tell; a reader that is further behind starts over.
  std::size_t max_removals = 100'000;
};

// Thread-safe. Several processes may open the same file. Besides what EvidenceStore says, calls
// fail with the errors of store/sql/database.h; Apply with execution.foreign when an id that it
// names belongs to another compute.
class SqliteEvidenceStore final : public EvidenceStore {
 public:
  // `clock` says when a row was first seen; it outlives the store.
  static base::Result<std::unique_ptr<SqliteEvidenceStore>> Open(
      const SqliteEvidenceOptions& options, base::Clock& clock);
  ~SqliteEvidenceStore() override;

  base::Result<std::uint64_t> Watermark(std::string_view compute_id,
                                        std::string_view stream_id) override;
  base::Result<std::uint64_t> Apply(std::string_view organisation_id, std::string_view compute_id,
                                    std::string_view stream_id,
                                    std::span<const EvidenceChange> changes) override;
  base::Result<ExecutionPage> List(const ExecutionFilter& filter,
                                   const std::optional<ExecutionCursor>& after,
                                   std::size_t limit) override;
  base::Result<evidence::Execution> Get(std::string_view organisation_id,
                                        std::string_view execution_id) override;
  base::Result<std::vector<LogTailRow>> LogTails(std::string_view execution_id) override;
  base::Result<std::optional<BundleRow>> Bundle(std::string_view execution_id) override;
  base::Result<ChangePage> Changed(const FeedPlace& after, std::size_t limit) override;
  base::Status PutHealth(std::string_view organisation_id, std::string_view compute_id,
                         const evidence::HealthReport& report, base::WallTime now) override;
  base::Result<std::vector<NodeHealth>> Health(std::string_view organisation_id,
                                               std::string_view compute_id) override;
  base::Status PutClusterState(std::string_view organisation_id, std::string_view compute_id,
                               const evidence::ClusterState& state, base::WallTime now) override;
  base::Result<std::optional<ReportedClusterState>> ClusterState(
      std::string_view organisation_id, std::string_view compute_id) override;
  base::Result<std::size_t> DropExecutionsBefore(base::WallTime before, std::size_t limit) override;
  base::Result<bool> BlobReferenced(std::string_view blob) override;

 private:
  struct Impl;
  explicit SqliteEvidenceStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::store
