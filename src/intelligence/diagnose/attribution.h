// Where a failure points to: the node, or whoever its class belongs to. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "intelligence/diagnose/case.h"
#include "intelligence/diagnose/diagnosis.h"

namespace expanse::intelligence::diagnose {

inline constexpr std::uint32_t kLeastOnNode = 3;
inline constexpr std::uint32_t kLeastUsers = 2;

// At least kLeastOnNode executions of other workloads and kLeastUsers users had the class on the
// node, twice as many as on all other nodes together, of which at least two had failures at all: of
// a compute with few nodes, everything points to each.
bool PointsToNode(const NodeRecord& record);

// The record of the one node of the execution to which its class points; null where there is none,
// or more than one.
const NodeRecord* NodePointedTo(const Case& of, std::string_view failure_class);

// The stage `attribution`. It is degraded as long as no code regions are captured: which line of
// the program was at work is not known.
Stage AttributionStage(const Case& of, const Diagnosis& diagnosis);

}  // namespace expanse::intelligence::diagnose
