#include "intelligence/diagnose/attribution.h"

#include <string>
#include <utility>

namespace expanse::intelligence::diagnose {
namespace {

constexpr const char* kNoRegions = "no code regions captured";

std::string OwnerPhrase(std::string_view owner) {
  if (owner == "user") return "what the user can mend";
  if (owner == "infrastructure") return "infrastructure";
  if (owner == "policy") return "policy of the site";
  if (owner == "either") return "user or infrastructure";
  return {};
}

}  // namespace

bool PointsToNode(const NodeRecord& record) {
  return record.executions >= kLeastOnNode && record.users >= kLeastUsers &&
         record.other_nodes >= 2 && record.executions >= 2 * std::uint64_t{record.elsewhere};
}

const NodeRecord* NodePointedTo(const Case& of, std::string_view failure_class) {
  const NodeRecord* found = nullptr;
  for (const NodeRecord& record : of.node_records) {
    if (record.failure_class != failure_class || !PointsToNode(record)) continue;
    if (found != nullptr) return nullptr;
    found = &record;
  }
  return found;
}

Stage AttributionStage(const Case& of, const Diagnosis& diagnosis) {
  const auto stage = [](StageStatus status, std::string summary) {
    return Stage{.name = "attribution", .status = status, .summary = std::move(summary)};
  };
  if (diagnosis.failure_class.empty()) return stage(StageStatus::kSkipped, "nothing failed");
  if (const NodeRecord* node = NodePointedTo(of, diagnosis.failure_class)) {
    const std::string all = std::to_string(std::uint64_t{node->executions} + node->elsewhere);
    return stage(StageStatus::kDegraded, "node " + node->node + ": " +
                                             std::to_string(node->executions) + " of " + all +
                                             " others like it; " + kNoRegions);
  }
  const std::string owner = OwnerPhrase(diagnosis.owner);
  if (owner.empty()) return stage(StageStatus::kSkipped, kNoRegions);
  return stage(StageStatus::kDegraded, owner + "; " + kNoRegions);
}

}  // namespace expanse::intelligence::diagnose
