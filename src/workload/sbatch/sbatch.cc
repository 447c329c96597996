#include "workload/sbatch/sbatch.h"

#include <limits>
#include <utility>

#include "workload/sbatch/arguments.h"
#include "workload/sbatch/script.h"

namespace expanse::workload {
namespace {

using sbatch::Asked;
using sbatch::Component;
using sbatch::ComponentReading;
using sbatch::Directives;
using sbatch::Given;

template <typename T, typename U>
std::optional<T> Fitting(const std::optional<U>& value) {
  if (!value || std::cmp_greater(*value, std::numeric_limits<T>::max())) return std::nullopt;
  return static_cast<T>(*value);
}

void FillRequest(const Asked& asked, Request& request) {
  const sbatch::Totals totals = MakeTotals(asked);
  if (totals.cpus) request.cpu_cores = static_cast<double>(*totals.cpus);
  if (totals.gpus) request.gpu_count = static_cast<double>(*totals.gpus);
  request.memory_bytes = totals.memory;
  request.walltime_s = asked.walltime_s.value;
  request.nodes = Fitting<std::uint32_t>(totals.nodes);
  request.tasks = Fitting<std::uint32_t>(totals.tasks);
  request.exclusive = asked.exclusive;
}

void AddInsertions(const Component& component, const Directives& directives, std::string_view text,
                   const Asked& asked, Part& part) {
  // A last line without newline gets one in front of what is inserted.
  const bool open = component.insert_at > 0 && component.insert_at == text.size() &&
                    text[component.insert_at - 1] != '\n';
  const auto add = [&](Quantity quantity, std::string_view option) {
    part.insertions.push_back(
        {.quantity = quantity,
         .bound = Bound::kRequest,
         .offset = component.insert_at,
         .before = (open ? directives.newline : "") + "#SBATCH " + std::string(option) + "=",
         .after = open ? "" : directives.newline});
  };
  if (!asked.memory_per_node.given && !asked.memory_per_cpu.given && !asked.memory_per_gpu.given)
    add(Quantity::kMemory, "--mem");
  if (!asked.walltime_s.given) add(Quantity::kWalltime, "--time");
  if (!asked.cpus_per_task.given && !asked.cpus_per_gpu.given && !asked.cpus_per_node.given)
    add(Quantity::kCpu, "--cpus-per-task");
  if (!asked.gpus.given && !asked.gpus_per_node.given && !asked.gpus_per_task.given &&
      !asked.gpus_per_socket.given)
    add(Quantity::kGpu, "--gpus");
}

}  // namespace

namespace sbatch {

Parsed<Script> ReadScript(std::string_view text) {
  if (text.size() > kMaxText)
    return std::unexpected(Refusal{0, 0, "too_large", "more than 4 MiB of script"});
  auto directives = ReadDirectives(text);
  if (!directives) return std::unexpected(directives.error());
  const LineIndex lines(text);
  Script script;
  script.body = directives->body;
  Submission& submission = script.submission;
  submission.format = Format::kSbatch;
  submission.notes = std::move(directives->notes);
  std::vector<Given> carried;
  for (const Component& component : directives->components) {
    auto given = ReadArguments(component, lines, submission.notes);
    if (!given) return std::unexpected(given.error());
    auto reading = ReadComponent(*given, carried, lines, text, submission.notes);
    if (!reading) return std::unexpected(reading.error());
    Part part = std::move(reading->part);
    part.kind = "sbatch";
    FillRequest(reading->asked, part.request);
    AddInsertions(component, *directives, text, reading->asked, part);
    if (submission.parts.empty()) {
      submission.name = part.workload;
      submission.outputs = std::move(reading->outputs);
      if (!reading->input.empty()) submission.files.push_back(std::move(reading->input));
    }
    carried = std::move(reading->carried);
    submission.parts.push_back(std::move(part));
    script.asked.push_back(reading->asked);
  }
  return script;
}

}  // namespace sbatch

Parsed<Submission> ParseSbatch(std::string_view text) {
  auto script = sbatch::ReadScript(text);
  if (!script) return std::unexpected(script.error());
  return std::move(script->submission);
}

}  // namespace expanse::workload
