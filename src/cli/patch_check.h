// Whether a patch changes requested resources and nothing else. A server is not trusted with what a
// user's file does. Pure.
#pragma once

#include <string_view>

#include "base/result.h"

namespace expanse::cli {

// Fails with patch.not_resources (failed_precondition) unless `patched` is `original` but for
// values of resources, and for places of resources that came. A file that no parser reads is never
// that.
base::Status CheckChange(std::string_view path, std::string_view original,
                         std::string_view patched);

}  // namespace expanse::cli
