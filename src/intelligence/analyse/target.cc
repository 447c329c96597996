#include <algorithm>

#include "intelligence/analyse/analyse.h"
#include "workload/parse.h"

namespace expanse::intelligence::analyse {
namespace {

using workload::Part;

base::Error RefusalError(const std::string& path, const workload::Refusal& refusal) {
  std::string where = path;
  if (refusal.line > 0) where += ":" + std::to_string(refusal.line);
  if (refusal.line > 0 && refusal.column > 0) where += ":" + std::to_string(refusal.column);
  return {base::Code::kInvalidArgument, "analyse." + refusal.reason,
          where + ": " + refusal.message};
}

// How much of a machine a part takes, for "the largest": devices first, then memory, then cores.
struct Weight {
  double gpus = 0;
  double memory = 0;
  double cores = 0;
  auto operator<=>(const Weight&) const = default;
};

Weight WeightOf(const Part& part) {
  const workload::Request& asked = part.request;
  return {.gpus = asked.gpu_count.value_or(0) * part.replicas,
          .memory = static_cast<double>(asked.memory_bytes.value_or(0)) * part.replicas,
          .cores = asked.cpu_cores.value_or(0) * part.replicas};
}

// Main parts before those that only prepare; then the largest; of equals the first.
std::size_t LargestOf(const std::vector<Part>& parts, const std::vector<std::size_t>& among) {
  std::size_t best = among.front();
  for (const std::size_t index : among) {
    const Part& part = parts[index];
    const Part& known = parts[best];
    if (part.is_init != known.is_init ? known.is_init : WeightOf(part) > WeightOf(known))
      best = index;
  }
  return best;
}

bool Names(const Part& part, const std::string& wanted) {
  return wanted == part.workload || wanted == part.group || wanted == part.name ||
         wanted == part.workload + "/" + part.name || wanted == part.group + "/" + part.name ||
         wanted == part.workload + "/" + part.group + "/" + part.name;
}

}  // namespace

std::string NameOf(const Part& part) {
  std::string name = part.workload;
  for (const std::string& piece : {part.group, part.name}) {
    if (piece.empty()) continue;
    if (!name.empty()) name += '/';
    name += piece;
  }
  return name;
}

base::Result<Target> ReadTarget(const Question& question) {
  const workload::ParseOptions options{.variables = question.variables};
  auto submission = workload::Parse(question.target.path, question.target.data, options);
  if (!submission) return std::unexpected(RefusalError(question.target.path, submission.error()));
  if (submission->parts.empty())
    return base::Fail(base::Code::kInvalidArgument, "analyse.no_workload",
                      question.target.path + " describes no workload");
  std::vector<std::size_t> among;
  for (std::size_t index = 0; index < submission->parts.size(); ++index) {
    if (question.workload.empty() || Names(submission->parts[index], question.workload))
      among.push_back(index);
  }
  if (among.empty()) {
    std::string names;
    for (const Part& part : submission->parts) {
      if (names.size() > 400) {
        names += ", …";
        break;
      }
      if (!names.empty()) names += ", ";
      names += NameOf(part);
    }
    return base::Fail(
        base::Code::kInvalidArgument, "analyse.no_workload",
        question.target.path + " has no workload '" + question.workload + "'; it has " + names);
  }
  Target target;
  target.part = LargestOf(submission->parts, among);
  target.submission = std::move(*submission);
  return target;
}

}  // namespace expanse::intelligence::analyse
