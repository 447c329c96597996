// Command-line flags of programs that are configured by settings (server, daemon). The `expanse`
// command has a richer parser of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/settings.h"

namespace expanse::base {

struct Flags {
  std::map<std::string, std::string> settings;  // by setting name, for Settings::Load
  std::vector<std::string> words;               // what is no flag: the subcommand
  std::string config_file;                      // --config FILE
  bool help = false;                            // -h, --help
  bool version = false;                         // --version
};

// `--flag value` or `--flag=value`; a boolean flag may stand alone. Fails with flags.unknown (with
// the nearest known flag), flags.value (missing) or flags.secret (a secret belongs into the
// environment).
Result<Flags> ParseFlags(const std::vector<SettingSpec>& specs,
                         const std::vector<std::string>& arguments);

}  // namespace expanse::base
