// The sources of samples that settings ask for; the same on a controller and on a worker node.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "daemon/sampler.h"

namespace expanse::daemon {

// All collectors but those in collect.disable, not started. Raises this process's limit of open
// files to what they can use. `node`: the name that their series carry.
std::vector<SamplerSource> MakeSources(const base::Settings& settings, const std::string& node);

}  // namespace expanse::daemon
