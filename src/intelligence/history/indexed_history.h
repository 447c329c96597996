// The history that look-ups read: an index over the evidence store's executions, in an SQLite file
// of its own, kept up to date in the background from the store's change feed. The index is a copy
// and can be deleted at any time; it is then made again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "intelligence/history/history.h"
#include "store/blobs/blob_store.h"
#include "store/records/evidence_store.h"
#include "store/series/series_store.h"

namespace expanse::intelligence::history {

struct HistoryOptions {
  std::string path;                      // of the index; its directory exists
  std::size_t readers = 4;               // look-ups that read at the same time
  std::chrono::milliseconds poll{1000};  // how often the feed is looked at
};

// What the index is made from; outlives it.
struct HistorySources {
  store::EvidenceStore& records;
  store::SeriesStore& series;
  store::BlobStore& blobs;
};

struct HistorySize {
  std::uint64_t runs = 0;
  std::uint64_t bundles = 0;
  std::uint64_t memory_bytes = 0;  // of the similarity index
};

// Find, Notify and Size are thread-safe; Start, Stop and CatchUp belong to one thread.
class IndexedHistory final : public History {
 public:
  // Reads the fingerprints of all bundles into memory. Fails with the errors of
  // store/sql/database.h. An index that another version made is emptied.
  static base::Result<std::unique_ptr<IndexedHistory>> Open(const HistoryOptions& options,
                                                            const HistorySources& sources,
                                                            base::Clock& clock,
                                                            base::MetricRegistry& metrics);
  ~IndexedHistory() override;

  base::Result<Found> Find(const Query& query) override;

  // Follows the feed on a thread of its own.
  void Start();
  // Ends that within a page. Idempotent.
  void Stop();
  // There may be something new: looks now instead of at the next poll. Does not block.
  void Notify();
  // Reads the feed to its end here and now. Not while started.
  base::Status CatchUp();

  base::Result<HistorySize> Size();

 private:
  struct Impl;
  explicit IndexedHistory(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::intelligence::history
