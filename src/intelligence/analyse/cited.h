// The executions that an answer names as its evidence.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "intelligence/analyse/question.h"
#include "intelligence/history/history.h"

namespace expanse::intelligence::analyse {

// Of the runs at `indices` of `found`, in that order.
std::vector<Cited> Cite(const history::Found& found, const std::vector<std::size_t>& indices);

// How a run ended and what it used, in one line: "succeeded in 2 h 10 min, peak memory 13.1 GiB".
std::string Summarise(const predict::Run& run);

// "45 s", "12 min", "2 h 10 min", "3 d 4 h".
std::string FormatDuration(double seconds);

}  // namespace expanse::intelligence::analyse
