// The diff that makes a target ask for what was recommended.
#pragma once

#include "intelligence/analyse/analyse.h"
#include "intelligence/predict/recommend.h"

namespace expanse::intelligence::analyse {

// Sets the answer's patch where something of the target can be changed; what cannot be is said in a
// warning, and stays a recommendation.
void AddPatch(const Question& question, const Target& target,
              const predict::Recommendation& recommendation, Answer* answer);

}  // namespace expanse::intelligence::analyse
