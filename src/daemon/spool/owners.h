// The users whose segments the controller takes, from the setting `spool.owners`.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace expanse::daemon::spool {

// Names or numbers of users. Fails with spool.owner for a user that the machine does not know.
base::Result<std::vector<uid_t>> ParseOwners(const std::vector<std::string>& users);

}  // namespace expanse::daemon::spool
