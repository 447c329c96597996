#include "schedulers/slurm/text/separator.h"

#include "base/crypto.h"

namespace expanse::schedulers::slurm {

std::string NewSeparator() { return kSeparatorLead + base::Base64UrlEncode(base::RandomBytes(6)); }

}  // namespace expanse::schedulers::slurm
