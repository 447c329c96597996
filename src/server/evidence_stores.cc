#include "server/evidence_stores.h"

#include "base/files.h"

namespace expanse::server {

base::Result<std::unique_ptr<EvidenceStores>> EvidenceStores::Open(const std::string& state_dir,
                                                                   base::Clock& clock) {
  const std::string directory = base::JoinPath(state_dir, "data");
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory, 0700));
  auto stores = std::make_unique<EvidenceStores>();
  EXPANSE_ASSIGN_OR_RETURN(
      stores->records,
      store::SqliteEvidenceStore::Open({.path = base::JoinPath(directory, "records.db")}, clock));
  EXPANSE_ASSIGN_OR_RETURN(stores->series, store::SqliteSeriesStore::Open(
                                               {.path = base::JoinPath(directory, "series.db")}));
  EXPANSE_ASSIGN_OR_RETURN(
      stores->blobs, store::DirectoryBlobStore::Open(base::JoinPath(directory, "blobs"), clock));
  return stores;
}

}  // namespace expanse::server
