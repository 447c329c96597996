// Cases that the bench makes for their size: what speed and memory are measured with.
#pragma once

#include <cstddef>

#include "intelligence/diagnose/case.h"

namespace expanse::bench {

// A long noisy log of a training with one cause in its middle.
intelligence::diagnose::Case LongCase(std::size_t lines);

// As long, but no two lines are alike: what costs most to reduce.
intelligence::diagnose::Case DistinctCase(std::size_t lines);

// What a run usually has: the tails of two streams (some 2,000 lines), a script and two sources,
// measurements, 40 similar runs.
intelligence::diagnose::Case OrdinaryCase();

}  // namespace expanse::bench
