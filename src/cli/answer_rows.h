// Values of the intelligence plane's answers as its rows show them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/table.h"
#include "expanse/intelligence/v1/analyse.pb.h"

namespace expanse::cli {

inline constexpr std::string_view kUnknown = "unknown";

// At most `decimals` of them, no zeros at the end; "unknown" for what is no number.
std::string Short(double value, int decimals);

// Memory in GiB without the unit: "15", "79.6", "1.5", "0.25".
std::string ShowGib(std::uint64_t bytes);

// "mean=0.90 sigma=0.12 p10=0.73 p90=1.00", or "unknown".
std::string ShowProbability(const intelligence::v1::Probability& p);

// "low", "medium", "high"; "unknown" for unspecified or newer than this program.
Cell ShowConfidence(intelligence::v1::ConfidenceLabel label);

}  // namespace expanse::cli
