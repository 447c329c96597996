// The embedded stores of evidence under state_dir/data: the data plane writes them, the
// intelligence plane reads them. One set per process, however many planes it runs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/blobs/directory_blob_store.h"
#include "store/records/sqlite_evidence_store.h"
#include "store/series/sqlite_series_store.h"

namespace expanse::server {

// Its members are thread-safe. `clock` outlives it.
struct EvidenceStores {
  static base::Result<std::unique_ptr<EvidenceStores>> Open(const std::string& state_dir,
                                                            base::Clock& clock);

  std::unique_ptr<store::SqliteEvidenceStore> records;
  std::unique_ptr<store::SqliteSeriesStore> series;
  std::unique_ptr<store::DirectoryBlobStore> blobs;
};

}  // namespace expanse::server
