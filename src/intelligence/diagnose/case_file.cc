#include "intelligence/diagnose/case_file.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"

namespace expanse::intelligence::diagnose {
namespace {

using base::Status;
using evidence::ExecutionStatus;
using evidence::Outcome;
using evidence::SourceType;
using nlohmann::json;

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::optional<double> Number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// A number without a fraction that fits.
template <typename T>
std::optional<T> Whole(const json& object, const char* key) {
  return base::ParseInt<T>(Text(object, key));
}

std::vector<std::string> Words(const json& object, const char* key) {
  std::vector<std::string> words;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return words;
  for (const json& word : *found)
    if (word.is_string()) words.push_back(word.get<std::string>());
  return words;
}

SourceType SourceOf(const std::string& scheduler) {
  if (scheduler == "slurm") return SourceType::kSlurm;
  if (scheduler == "kubernetes") return SourceType::kKubernetes;
  if (scheduler == "nomad") return SourceType::kNomad;
  if (scheduler == "bare" || scheduler == "vm" || scheduler == "host" || scheduler == "local")
    return SourceType::kHost;
  return SourceType::kUnspecified;
}

std::optional<int> SignalOf(std::string name) {
  static const std::map<std::string, int> kSignals = {
      {"HUP", 1}, {"INT", 2},  {"QUIT", 3},  {"ILL", 4},   {"ABRT", 6}, {"BUS", 7},
      {"FPE", 8}, {"KILL", 9}, {"SEGV", 11}, {"PIPE", 13}, {"TERM", 15}};
  if (name.starts_with("SIG")) name.erase(0, 3);
  const auto found = kSignals.find(name);
  if (found != kSignals.end()) return found->second;
  return base::ParseInt<int>(name);
}

// One text, or a list of lines.
std::string Log(const json& object) {
  if (const auto found = object.find("log"); found == object.end() || !found->is_array())
    return Text(object, "log");
  std::string text;
  for (const std::string& line : Words(object, "log")) text += line + '\n';
  return text;
}

// "1", "1:0", "0:9", "-9" (a signal).
void TakeExit(const std::string& text, evidence::Execution* to) {
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  const auto code = base::ParseInt<int>(std::string_view(text).substr(0, colon));
  if (code && *code < 0) {
    if (*code > -128) to->signal = -*code;
  } else if (code) {
    to->exit_code = *code;
  }
  if (colon == std::string::npos) return;
  const auto signal = base::ParseInt<int>(std::string_view(text).substr(colon + 1));
  if (signal && *signal > 0) to->signal = *signal;
}

void TakeState(const std::string& state, evidence::Execution* to) {
  to->native_state = state;
  to->status = ExecutionStatus::kFailed;
  if (state.starts_with("COMPLETED") || state == "Succeeded")
    to->status = ExecutionStatus::kSucceeded;
  if (state.starts_with("CANCELLED")) to->status = ExecutionStatus::kCancelled;
  if (state.starts_with("RUNNING")) to->status = ExecutionStatus::kRunning;
  if (state.starts_with("PENDING")) to->status = ExecutionStatus::kQueued;
}

void TakeSnapshot(const json& from, Snapshot* to) {
  to->host_ram_observed_peak_bytes = Number(from, "memory_peak_bytes");
  to->host_ram_requested_bytes = Number(from, "memory_limit_bytes");
  to->runtime_s = Number(from, "runtime_s");
  to->walltime_s = Number(from, "walltime_s");
  to->idle_tail_s = Number(from, "idle_tail_s");
  to->gpu_count = Number(from, "gpu_count");
  to->gpu_utilisation_pct = Number(from, "gpu_utilisation_pct");
  to->gpu_memory_available_bytes = Number(from, "gpu_memory_available_bytes");
  to->gpu_memory_observed_bytes = Number(from, "gpu_memory_observed_bytes");
  to->memory_growth_bytes_per_hour = Number(from, "memory_growth_bytes_per_hour");
  to->cpu_requested = Number(from, "cpu_requested");
  to->gpu_type = Text(from, "gpu_type");
}

Status Bad(std::string_view file, std::string what) {
  return base::Fail(base::Code::kInvalidArgument, "case.field",
                    std::string(file) + ": " + std::move(what));
}

void TakeSteps(const json& from, evidence::Execution* to) {
  for (const json& each : from) {
    evidence::Step step;
    step.id = Text(each, "id");
    step.native_state = Text(each, "state");
    step.exit_code = Whole<int>(each, "exit_code");
    step.signal = Whole<int>(each, "signal");
    to->steps.push_back(std::move(step));
  }
}

// {name: text}, each given to `take`.
Status TakeTexts(const json& from, const char* key, std::string_view file,
                 const std::function<void(const std::string&, const std::string&)>& take) {
  const auto found = from.find(key);
  if (found == from.end()) return {};
  const auto is_text = [](const json& value) { return value.is_string(); };
  if (!found->is_object() || !std::all_of(found->begin(), found->end(), is_text))
    return Bad(file, std::string("'") + key + "' is not a mapping of texts");
  for (const auto& [name, text] : found->items()) take(name, text.get_ref<const std::string&>());
  return {};
}

// A list of objects, given to `take`.
Status TakeList(const json& from, const char* key, std::string_view file,
                const std::function<void(const json&)>& take) {
  const auto found = from.find(key);
  if (found == from.end()) return {};
  const auto is_object = [](const json& value) { return value.is_object(); };
  if (!found->is_array() || !std::all_of(found->begin(), found->end(), is_object))
    return Bad(file, std::string("'") + key + "' is not a list of mappings");
  take(*found);
  return {};
}

void TakeEvents(const json& from, std::vector<Event>* to) {
  for (const json& event : from)
    to->push_back({.source = Text(event, "source"),
                   .at = {},
                   .node = Text(event, "node"),
                   .text = Text(event, "text")});
}

Status TakeExtras(const json& from, std::string_view file, Case* to) {
  if (const auto status = evidence::ParseStatus(Text(from, "status")))
    to->execution.status = *status;
  if (const auto outcome = evidence::ParseOutcome(Text(from, "outcome")))
    to->execution.outcome = *outcome;
  to->execution.native_reason = Text(from, "reason");
  to->execution.used.oom_kills = Whole<std::uint64_t>(from, "oom_kills").value_or(0);
  to->execution.restart_count = Whole<std::uint32_t>(from, "restart_count").value_or(0);
  if (const auto seen = from.find("snapshot"); seen != from.end()) {
    if (!seen->is_object()) return Bad(file, "'snapshot' is not a mapping");
    TakeSnapshot(*seen, &to->snapshot);
  }
  EXPANSE_RETURN_IF_ERROR(
      TakeList(from, "steps", file, [&](const json& steps) { TakeSteps(steps, &to->execution); }));
  EXPANSE_RETURN_IF_ERROR(
      TakeList(from, "events", file, [&](const json& events) { TakeEvents(events, &to->events); }));
  EXPANSE_RETURN_IF_ERROR(
      TakeTexts(from, "labels", file, [&](const std::string& key, const std::string& value) {
        to->execution.labels[key] = value;
      }));
  to->execution.used.memory_peak_basis = Text(from, "memory_peak_basis");
  EXPANSE_RETURN_IF_ERROR(
      TakeTexts(from, "sources", file, [&](const std::string& path, const std::string& text) {
        to->sources.push_back({.path = path, .role = "script", .data = text});
      }));
  return TakeTexts(from, "streams", file, [&](const std::string& name, const std::string& text) {
    to->logs.push_back({.stream = name, .data = text});
  });
}

base::Result<LabelledCase> CaseOf(const json& from, std::string_view file) {
  if (!from.is_object())
    return base::Fail(base::Code::kInvalidArgument, "case.syntax",
                      std::string(file) + ": a case is a mapping");
  LabelledCase labelled;
  labelled.id = Text(from, "id");
  labelled.true_class = Text(from, "true_class");
  labelled.accept = Words(from, "accept");
  labelled.tags = Words(from, "tags");
  Case& to = labelled.what;
  to.execution.execution_id = labelled.id;
  to.execution.name = labelled.id;
  to.execution.source_type = SourceOf(Text(from, "scheduler"));
  to.execution.status = ExecutionStatus::kFailed;
  if (const std::string state = Text(from, "state"); !state.empty())
    TakeState(state, &to.execution);
  TakeExit(Text(from, "exit_code"), &to.execution);
  if (const auto signal = SignalOf(Text(from, "signal"))) to.execution.signal = signal;
  if (const std::string log = Log(from); !log.empty())
    to.logs.push_back({.stream = "combined", .data = log});
  EXPANSE_RETURN_IF_ERROR(TakeExtras(from, file, &to));
  return labelled;
}

}  // namespace

bool IsRight(const LabelledCase& of, std::string_view said) {
  if (said.empty()) said = "none";
  return said == of.true_class || std::ranges::find(of.accept, said) != of.accept.end();
}

base::Result<std::vector<LabelledCase>> ParseCases(std::string_view text, std::string_view file) {
  const json from = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (from.is_discarded())
    return base::Fail(base::Code::kInvalidArgument, "case.syntax",
                      std::string(file) + ": this is not JSON");
  std::vector<LabelledCase> cases;
  if (!from.is_array()) {
    EXPANSE_ASSIGN_OR_RETURN(LabelledCase one, CaseOf(from, file));
    cases.push_back(std::move(one));
    return cases;
  }
  for (const json& each : from) {
    EXPANSE_ASSIGN_OR_RETURN(LabelledCase one, CaseOf(each, file));
    cases.push_back(std::move(one));
  }
  return cases;
}

base::Result<std::vector<LabelledCase>> ReadCases(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  if (std::filesystem::is_regular_file(folder, error)) {
    paths.push_back(folder);
  } else {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
      if (entry.path().extension() == ".json") paths.push_back(entry.path());
    }
  }
  if (error)
    return base::Fail(base::Code::kNotFound, "case.folder",
                      folder.string() + ": " + error.message());
  std::sort(paths.begin(), paths.end());
  std::vector<LabelledCase> cases;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    EXPANSE_ASSIGN_OR_RETURN(auto more, ParseCases(text.str(), path.string()));
    for (LabelledCase& labelled : more) {
      if (labelled.true_class.empty())
        return base::Fail(base::Code::kInvalidArgument, "case.field",
                          path.string() + ": a case needs true_class");
      cases.push_back(std::move(labelled));
    }
  }
  return cases;
}

}  // namespace expanse::intelligence::diagnose
