// The root-cause text and what the answer says beside it. Pure.
#pragma once

#include <string>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/diagnosis.h"
#include "intelligence/diagnose/verdict.h"
#include "intelligence/diagnose/wording.h"

namespace expanse::intelligence::diagnose {

// Fills class, title, root cause, advice, evidence, alternatives and field statuses of a diagnosis
// whose verdict has a best finding. Every quote is checked against the ledger: one that is not
// there byte for byte is left out with the sentence that it is in.
void Explain(const Known& known, const Verdict& verdict, Diagnosis* diagnosis);

// The same for a run of which nothing explains the end, or that did not fail.
void ExplainNothingFound(const Case& of, const Verdict& verdict, Diagnosis* diagnosis);

}  // namespace expanse::intelligence::diagnose
