// Manual pages (man(7) macros) made from the command tree: expanse(1) and one page per command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/spec.h"

namespace expanse::cli {

struct ManPage {
  std::string file_name;  // "expanse-compute-register.1"
  std::string text;
};

// The root's page first. No dates, so that the same program always writes the same pages.
std::vector<ManPage> ManPages(const CommandSpec& root, std::string_view version);

}  // namespace expanse::cli
