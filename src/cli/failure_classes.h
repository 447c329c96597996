// The classes of failed executions as the intelligence plane knows them already: what lists of
// executions show beside them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/planes.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"

namespace expanse::cli {

// By execution id.
using FailureClasses = std::map<std::string, intelligence::v1::FailureClass>;

// One call for each thousand of `execution_ids`; none where there are none. Never fails: what
// cannot be had is left out. A plane that is away, slow or fails is said on stderr once; one that
// there is not, that is older than the question, or that may not be asked is passed over in
// silence, since nothing about it is news.
FailureClasses FindFailureClasses(App& app, Planes& planes,
                                  const std::vector<std::string>& execution_ids);

// "host_out_of_memory (high): the job ran out of memory"; empty for none.
std::string ShowFailureClass(const intelligence::v1::FailureClass& found);

}  // namespace expanse::cli
