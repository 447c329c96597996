// The tables of the embedded evidence store. Internal to store/records.
#pragma once

#include <span>

#include "store/sql/database.h"

namespace expanse::store::records {

// execution  what is filtered or sorted as columns, the whole record in `detail`
// log_tail, bundle, bundle_file, bundle_skipped  manifests; bytes are in the blob store
// watermark  the highest sequence applied per (compute, stream)
// health     the latest report per (compute, node)
std::span<const sql::Migration> RecordMigrations();

}  // namespace expanse::store::records
