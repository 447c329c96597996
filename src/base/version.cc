#include "base/version.h"

namespace expanse::base {

std::string_view Version() { return EXPANSE_VERSION; }

}  // namespace expanse::base
