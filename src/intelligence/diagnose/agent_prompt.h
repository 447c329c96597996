// The prompt for a user's own coding agent. Pure; bounded.
#pragma once

#include <string>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/diagnosis.h"

namespace expanse::intelligence::diagnose {

inline constexpr std::size_t kMaxPrompt = 24'000;

// Job, diagnosis, snapshot, evidence, sources, the end of the log and what succeeded before, with
// the request to check the cause in the repository before anything is changed. What users or
// programs wrote stands between fences that it cannot close, marked as data; control characters are
// escaped.
std::string AgentPrompt(const Case& of, const Diagnosis& diagnosis);

}  // namespace expanse::intelligence::diagnose
