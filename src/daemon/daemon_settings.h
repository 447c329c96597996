// The daemon's options, each declared once; flags, environment, --help and docs/ come from here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "daemon/daemon.h"

namespace expanse::daemon {

std::vector<base::SettingSpec> DaemonSettings();

// `version` is the program's. Node and state directory are filled in where the settings leave them
// open: the host's name; /var/lib/expanse for root, ~/.expanse/state for others.
DaemonOptions OptionsFrom(const base::Settings& settings, std::string_view version,
                          const base::Settings::Environment& environment, bool is_root);

// The directory by itself, for `healthcheck`.
std::string StateDirectory(const base::Settings& settings,
                           const base::Settings::Environment& environment, bool is_root);

}  // namespace expanse::daemon
