#include "workload/sbatch/sbatch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "workload/sbatch/arguments.h"
#include "workload/sbatch/foreign.h"
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

// Between a long option and its value: what the script uses, "=" where it uses both or neither.
std::string_view Separator(const std::vector<std::vector<Given>>& components,
                           std::string_view text) {
  std::size_t blanks = 0, others = 0;
  for (const auto& component : components) {
    for (const Given& given : component) {
      const std::size_t at = given.value.begin_offset();
      if (!given.has_value || !given.written.starts_with("--") || at == 0) continue;
      (text[at - 1] == ' ' || text[at - 1] == '\t' ? blanks : others) += 1;
    }
  }
  return blanks > others ? " " : "=";
}

// Options of every component, those of foreign lines behind them.
Parsed<std::vector<std::vector<Given>>> ReadOptions(const Directives& directives,
                                                    const LineIndex& lines,
                                                    std::vector<Note>& notes) {
  std::vector<std::vector<Given>> components;
  bool ignore_foreign = directives.foreign.empty();
  for (const Component& component : directives.components) {
    auto given = sbatch::ReadArguments(component, lines, notes);
    if (!given) return std::unexpected(given.error());
    ignore_foreign |= std::ranges::any_of(*given, [](const Given& each) {
      return each.option != nullptr && each.option->id == sbatch::OptionId::kIgnorePbs;
    });
    components.push_back(*std::move(given));
  }
  if (ignore_foreign) return components;
  const std::vector<Given> foreign = sbatch::ReadForeign(directives.foreign, lines, notes);
  for (auto& given : components) given.insert(given.end(), foreign.begin(), foreign.end());
  return components;
}

void AddInsertions(const Component& component, const Directives& directives, std::string_view text,
                   std::string_view separator, const Asked& asked, Part& part) {
  if (!component.insert_at) return;
  const std::size_t at = *component.insert_at;
  // A last line without newline gets one in front of what is inserted.
  const bool open = at == text.size() && text.back() != '\n';
  const auto add = [&](Quantity quantity, std::string_view option, std::string_view prefix = "") {
    part.insertions.push_back({.quantity = quantity,
                               .bound = Bound::kRequest,
                               .offset = at,
                               .before = (open ? directives.newline : "") + "#SBATCH --" +
                                         std::string(option).append(separator).append(prefix),
                               .after = open ? "" : directives.newline});
  };
  const auto has = [&](Quantity quantity) {
    return std::ranges::any_of(part.settings, [&](const Setting& setting) {
      return setting.quantity == quantity && setting.effective;
    });
  };
  // Of these, the components of a het job pass on --mem and --time: each can have its own.
  const bool last = &component == &directives.components.back();
  if (!has(Quantity::kMemory))
    add(Quantity::kMemory, last || asked.memory_per_node.given ? "mem" : "mem-per-cpu");
  if (!has(Quantity::kWalltime)) add(Quantity::kWalltime, "time");
  if (!has(Quantity::kCpu)) add(Quantity::kCpu, "cpus-per-task");
  if (has(Quantity::kGpu)) return;
  if (part.request.nodes == 1U)
    add(Quantity::kGpu, "gres", "gpu:");
  else
    add(Quantity::kGpu, "gpus");
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
  auto options = ReadOptions(*directives, lines, submission.notes);
  if (!options) return std::unexpected(options.error());
  const std::string_view separator = Separator(*options, text);
  std::vector<Given> carried;
  for (std::size_t i = 0; i < options->size(); ++i) {
    auto reading = ReadComponent((*options)[i], carried, lines, text, submission.notes);
    if (!reading) return std::unexpected(reading.error());
    Part part = std::move(reading->part);
    part.kind = "sbatch";
    FillRequest(reading->asked, part.request);
    AddInsertions(directives->components[i], *directives, text, separator, reading->asked, part);
    if (submission.parts.empty()) {
      submission.name = part.workload;
      submission.outputs = std::move(reading->outputs);
      submission.directory = std::move(reading->directory);
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
