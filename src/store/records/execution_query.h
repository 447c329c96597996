// Pages of the list of executions inside a read transaction. Internal to store/records.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/records/evidence_store.h"
#include "store/sql/database.h"

namespace expanse::store::records {

struct PageStatement {
  std::string sql;
  std::vector<sql::Value> params;  // views into what BuildPage was given
};

// The statement for the first `limit` rows after `after`, of one user (null: of all; filter.users
// is not looked at beyond whether it is empty).
PageStatement BuildPage(const ExecutionFilter& filter, const std::string* user,
                        const std::optional<ExecutionCursor>& after, std::size_t limit);

// A page reads no more rows than it shows and those that its less selective filters turn away: the
// most selective filter chooses the index, whose order is that of the list. It ends early, with at
// least one row, where records are so large that it would take too much memory.
base::Result<ExecutionPage> ListExecutions(sql::Transaction& tx, const ExecutionFilter& filter,
                                           const std::optional<ExecutionCursor>& after,
                                           std::size_t limit);

}  // namespace expanse::store::records
