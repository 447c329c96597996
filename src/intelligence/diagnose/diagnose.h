// From a case to a diagnosis. Pure: no I/O, no clock; linear in the logs, memory bounded. Works
// with what there is: a part that is missing makes a stage degraded or skipped, never an error.
#pragma once

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/diagnosis.h"
#include "intelligence/diagnose/runbook_set.h"

namespace expanse::intelligence::diagnose {

Diagnosis Diagnose(const Case& of, const RunbookSet& runbooks);

}  // namespace expanse::intelligence::diagnose
