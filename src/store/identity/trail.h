// What every change of the identity store writes besides itself. Internal to store/identity.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/records/identity_store.h"
#include "store/sql/database.h"

namespace expanse::store {

base::Status WriteAudit(sql::Transaction& tx, const AuditEntry& entry);
// Notes that tokens of `subject` must be refused from now on; keeps the first time.
base::Status WriteRevocation(sql::Transaction& tx, std::string_view subject, base::WallTime now);
base::Status WriteUser(sql::Transaction& tx, const User& user);

// Lists in one column, one item a line.
std::string JoinLines(const std::vector<std::string>& lines);
std::vector<std::string> SplitLines(std::string_view text);

}  // namespace expanse::store
