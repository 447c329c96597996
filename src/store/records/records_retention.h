// Drops old executions and what hangs on them. Internal to store/records.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "store/sql/database.h"

namespace expanse::store::records {

// At most `limit` executions that were over before `before_us`, each with its manifests; when there
// are none left, manifests older than that whose execution never came. Returns how many went.
// The change feed keeps the newest `keep_removals` of what was removed.
base::Result<std::size_t> DropExecutions(sql::Transaction& tx, std::int64_t before_us,
                                         std::size_t limit, std::size_t keep_removals);

}  // namespace expanse::store::records
