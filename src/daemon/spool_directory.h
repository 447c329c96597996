// The directory through which `expanse run` of any user hands records to the daemon.
#pragma once

#include <string>

#include "base/result.h"

namespace expanse::daemon {

// Makes `path` if it is missing: for root a drop box (mode 1733: everybody may add files, nobody
// sees those of others), for other users a directory of their own (0700). Missing parents are made
// so that it can be reached. Whatever exists keeps its mode. The umask does not matter.
base::Status MakeSpoolDirectory(const std::string& path, bool is_root);

}  // namespace expanse::daemon
