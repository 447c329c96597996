// Brings a database to the schema of this program. Internal to store/sql.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "store/sql/connection.h"
#include "store/sql/database.h"

namespace expanse::store::sql {

// Applies those of `migrations` that the table schema_migrations does not name yet, all in one
// transaction under the write lock, so that a second process starting at the same time waits and
// then finds nothing to do. Returns the version reached. Fails with store.newer when the database
// has seen a later version than this program knows. `name` is for messages.
base::Result<int> Migrate(Connection& connection, std::span<const Migration> migrations,
                          std::string_view name);

}  // namespace expanse::store::sql
