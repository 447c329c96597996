// The version of this build, "0.1.0"; one for server, daemon and CLI.
#pragma once

#include <string_view>

namespace expanse::base {

std::string_view Version();

}  // namespace expanse::base
