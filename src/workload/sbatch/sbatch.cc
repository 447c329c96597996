#include "workload/sbatch/sbatch.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <ranges>
#include <utility>

#include "base/text.h"
#include "workload/sbatch/arguments.h"
#include "workload/sbatch/foreign.h"
#include "workload/sbatch/script.h"
#include "workload/source/command_files.h"
#include "workload/source/launchers.h"
#include "workload/source/shell_commands.h"

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
  const auto foreign = sbatch::ReadForeign(directives.foreign, lines, notes);
  if (!foreign) return std::unexpected(foreign.error());
  // They count for all components; those that others replace are told once.
  std::vector<Given> last;
  for (const Given& each : *foreign | std::views::reverse)
    if (std::ranges::find(last, each.option, &Given::option) == last.end()) last.push_back(each);
  for (auto& given : components) {
    const std::vector<Given>& added = &given == &components.front() ? *foreign : last;
    given.insert(given.end(), added.begin(), added.end());
  }
  return components;
}

void AddInsertions(const Component& component, const Directives& directives, std::string_view text,
                   std::string_view separator, const std::vector<Given>& options,
                   const Asked& asked, Part& part) {
  const std::size_t at = component.insert_at;
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
  // Where tasks alone say how many CPUs there are, more for each would be more than was asked for.
  if (!has(Quantity::kCpu) && part.request.tasks == part.request.nodes)
    add(Quantity::kCpu, "cpus-per-task");
  if (has(Quantity::kGpu)) return;
  // Another --gres would replace what stands there.
  const bool gres = std::ranges::any_of(options, [](const Given& each) {
    return each.option != nullptr && each.option->id == sbatch::OptionId::kGres;
  });
  if (part.request.nodes == 1U && !gres)
    add(Quantity::kGpu, "gres", "gpu:");
  else
    add(Quantity::kGpu, "gpus");
}

// "#!/usr/bin/env -S bash -l" runs "bash".
std::string_view Interpreter(std::string_view text) {
  const std::string_view line = text.substr(2, std::min(text.find('\n'), text.size()) - 2);
  for (const std::string_view word : base::SplitSpaces(line)) {
    const std::string_view name = source::BaseName(word);
    if (name != "env" && !name.starts_with('-') && !name.contains('=')) return name;
  }
  return {};
}

// What Slurm sets for the script, as far as its options tell.
std::map<std::string, std::string> SlurmVariables(const Part& part, const Asked& asked) {
  std::map<std::string, std::string> variables = part.environment;
  const auto set = [&](const char* name, const auto& value) {
    if (value) variables[name] = std::to_string(*value);
  };
  if (!part.workload.empty()) variables["SLURM_JOB_NAME"] = part.workload;
  set("SLURM_CPUS_PER_TASK", asked.cpus_per_task.value);
  set("SLURM_NTASKS_PER_NODE", asked.tasks_per_node.value);
  if (asked.tasks.given || asked.tasks_per_node.given) {
    set("SLURM_NTASKS", part.request.tasks);
    set("SLURM_NPROCS", part.request.tasks);
  }
  if (asked.nodes_min.given && asked.nodes_min.value == asked.nodes_max.value) {
    set("SLURM_NNODES", part.request.nodes);
    set("SLURM_JOB_NUM_NODES", part.request.nodes);
  }
  return variables;
}

// "module load gcc/12 cuda": what is loaded, by blanks.
std::string LoadedModules(const std::vector<Command>& commands) {
  std::string modules;
  for (const Command& command : commands) {
    const auto& words = command.words;
    if (words.size() < 2) continue;
    const std::string& verb = words[1].text;
    const bool loads = verb == "load" || verb == "add";
    // "ml gcc" loads too; its other verbs do not.
    static constexpr auto kVerbs = std::to_array<std::string_view>(
        {"unload", "rm", "del", "purge", "list", "avail", "spider", "use", "unuse", "swap", "reset",
         "save", "restore", "show", "help", "keyword", "update"});
    const bool ml =
        words[0].text == "ml" && !loads && std::ranges::find(kVerbs, verb) == kVerbs.end();
    if (!ml && !(loads && (words[0].text == "module" || words[0].text == "ml"))) continue;
    for (std::size_t i = ml ? 1 : 2; i < words.size(); ++i)
      if (!words[i].text.starts_with('-')) modules += (modules.empty() ? "" : " ") + words[i].text;
  }
  return modules;
}

// Commands belong to the component whose batch script it is: the first.
void ReadBody(std::string_view text, std::size_t body, const Asked& asked, Submission& submission) {
  if (!source::IsShell(Interpreter(text))) return;
  Part& part = submission.parts.front();
  source::ShellScript script =
      source::ReadShellScript(text, {.begin = body, .variables = SlurmVariables(part, asked)});
  part.commands = std::move(script.commands);
  part.environment.merge(script.environment);
  if (std::string modules = LoadedModules(part.commands); !modules.empty())
    part.annotations.emplace("modules", std::move(modules));
  for (std::string& file : source::FilesOfCommands(part.commands))
    submission.files.push_back(std::move(file));
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
  std::vector<const Given*> carried;
  for (std::size_t i = 0; i < options->size(); ++i) {
    auto reading = ReadComponent((*options)[i], carried, lines, text);
    if (!reading) return std::unexpected(reading.error());
    Part part = std::move(reading->part);
    part.kind = "sbatch";
    FillRequest(reading->asked, part.request);
    AddInsertions(directives->components[i], *directives, text, separator, (*options)[i],
                  reading->asked, part);
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
  ReadBody(text, script.body, script.asked.front(), submission);
  return script;
}

}  // namespace sbatch

Parsed<Submission> ParseSbatch(std::string_view text) {
  auto script = sbatch::ReadScript(text);
  if (!script) return std::unexpected(script.error());
  return std::move(script->submission);
}

}  // namespace expanse::workload
