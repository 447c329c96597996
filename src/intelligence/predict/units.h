// The amounts that people write into a request, and how an amount is said in a sentence.
#pragma once

#include <string>

#include "intelligence/predict/run.h"

namespace expanse::intelligence::predict {

// The smallest amount that people write and that is not below `amount`: memory 64, 128, 256, 512
// MiB, then whole GiB; walltime in steps of 5 minutes up to one hour, 15 up to four, 30 up to
// twelve, 60 beyond; whole cores and devices. `amount` is positive and finite.
double RoundUpToUnit(Resource resource, double amount);

// "12.4 GiB", "300 MiB", "2 h 30 min", "45 s", "16 cores", "1 GPU".
std::string Say(Resource resource, double amount);

}  // namespace expanse::intelligence::predict
