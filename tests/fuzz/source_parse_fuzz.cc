// Source files are whatever users have. Each is refused with a reason or read; facts have places
// within the text and numbers that are numbers, and so does what is estimated from them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "intelligence/predict/source_estimate.h"
#include "workload/parse.h"
#include "workload/source/source.h"
#include "workload/source/source_facts.h"

using namespace expanse;

namespace {

constexpr std::array<std::string_view, 6> kPaths = {"train.py",  "run.sh", "book.ipynb",
                                                    "Snakefile", "main.R", "run"};

void CheckEstimate(const intelligence::predict::Estimate& estimate) {
  if (!estimate.amount) return;
  if (!std::isfinite(*estimate.amount) || *estimate.amount <= 0 || estimate.reason.empty())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view path = kPaths[data[0] % kPaths.size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto format = workload::DetectFormat(path, text);
  if (!format && format.error().reason.empty()) std::abort();
  const auto submission = workload::ParseSource(path, text);
  if (!submission) {
    if (submission.error().message.empty()) std::abort();
    return 0;
  }
  const workload::Part& part = submission->parts.at(0);
  workload::SourceFacts facts =
      workload::ReadSourceFacts(part, {{.path = std::string(path), .text = text}});
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  for (const auto& [number, fact] : facts.numbers) {
    if (!std::isfinite(fact.value) || Name(number).empty()) std::abort();
    if (fact.evidence.line > lines && path != "book.ipynb") std::abort();
  }
  const auto estimate = intelligence::predict::EstimateFromSource(facts, part, {});
  for (const auto* one :
       {&estimate.cpu, &estimate.memory, &estimate.gpu, &estimate.walltime, &estimate.gpu_memory}) {
    CheckEstimate(*one);
  }
  return 0;
}
