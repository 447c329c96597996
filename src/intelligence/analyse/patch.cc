#include "intelligence/analyse/patch.h"

#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "workload/parse.h"
#include "workload/patch/edit.h"
#include "workload/patch/unified_diff.h"

namespace expanse::intelligence::analyse {
namespace {

using predict::Change;
using predict::ResourceAdvice;
using workload::Quantity;
using workload::Wanted;

std::vector<Wanted> WantedOf(const predict::Recommendation& recommendation, std::size_t part) {
  std::vector<Wanted> wanted;
  const auto add = [&](const ResourceAdvice& advice, Quantity quantity) {
    if (advice.change != Change::kNone && advice.amount)
      wanted.push_back({.part = part, .quantity = quantity, .amount = *advice.amount});
  };
  add(recommendation.cpu, Quantity::kCpu);
  add(recommendation.memory, Quantity::kMemory);
  add(recommendation.gpu, Quantity::kGpu);
  add(recommendation.walltime, Quantity::kWalltime);
  return wanted;
}

}  // namespace

void AddPatch(const Question& question, const Target& target,
              const predict::Recommendation& recommendation, Answer* answer) {
  if (target.submission.format == workload::Format::kSource) return;  // it asks for nothing
  const std::string& path = question.target.path;
  const std::string_view text = question.target.data;
  const workload::ParseOptions options{.variables = question.variables};
  std::vector<Wanted> possible;
  for (const Wanted& wanted : WantedOf(recommendation, target.part)) {
    const auto edits = workload::PlanEdits(path, text, target.submission, {wanted}, options);
    if (edits) {
      possible.push_back(wanted);
    } else {
      answer->warnings.push_back("the " + std::string(Name(wanted.quantity)) +
                                 " request is not in the patch: " + edits.error().message);
    }
  }
  if (possible.empty()) return;
  // Together, since two changes may meet in one value (memory per CPU).
  auto edits = workload::PlanEdits(path, text, target.submission, possible, options);
  if (!edits) {
    answer->warnings.push_back("there is no patch: " + edits.error().message);
    return;
  }
  const auto changed = workload::ApplyEdits(text, std::move(*edits));
  if (!changed) {
    answer->warnings.push_back("there is no patch: " + changed.error().message);
    return;
  }
  std::string diff = workload::MakeUnifiedDiff(path, text, *changed);
  if (diff.empty()) return;  // the file asks for it already
  answer->patch = Patch{.source_file = path,
                        .source_hash = "sha256:" + base::Sha256Hex(text),
                        .diff = std::move(diff)};
}

}  // namespace expanse::intelligence::analyse
