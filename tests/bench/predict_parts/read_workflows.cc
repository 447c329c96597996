// Traces of workflow engines: Nextflow, Snakemake, Spark experiments, WfCommons, k-Segments.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "bench/predict_parts/fields.h"
#include "bench/predict_parts/trace.h"

namespace expanse::bench {
namespace {

using intelligence::predict::Ending;

constexpr double kMiB = 1024.0 * 1024;

std::optional<double> NotZero(std::optional<double> value) {
  return value && *value > 0 ? value : std::nullopt;
}

// Raw traces write bytes and milliseconds, the default ones text.
std::optional<double> NextflowSeconds(std::string_view text) {
  if (const auto milliseconds = Number(text)) return *milliseconds / 1000;
  return Duration(text);
}
std::optional<double> NextflowMoment(std::string_view text) {
  if (const auto milliseconds = Number(text)) return *milliseconds / 1000;
  return Moment(text);
}

// "PROCESS (sample 1)" is a run of PROCESS.
std::string WithoutTag(std::string_view name) {
  if (const auto tag = name.find(" ("); tag != std::string_view::npos) name = name.substr(0, tag);
  return std::string(name);
}

std::optional<Ending> NextflowEnding(std::string_view status, std::string_view exit) {
  if (status == "COMPLETED") return Ending::kSuccess;
  if (status == "FAILED") return exit == "137" ? Ending::kOutOfMemory : Ending::kFailure;
  if (status == "ABORTED") return Ending::kCancelled;
  return std::nullopt;  // CACHED: of another run; SUBMITTED and so on never ended
}

std::string Text(const nlohmann::json& value, const char* key) {
  const auto found = value.find(key);
  return found != value.end() && found->is_string() ? found->get<std::string>() : "";
}
std::optional<double> Real(const nlohmann::json& value, const char* key) {
  const auto found = value.find(key);
  if (found == value.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace

Runs ReadNextflow(std::string_view text) {
  const Table table(text, Table::Separator(text));
  if (!table.Has("peak_rss") || !table.Has("realtime") || !table.Has("status")) return std::nullopt;
  std::vector<TraceRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto ending = NextflowEnding(table.At(i, "status"), table.At(i, "exit"));
    const auto runtime = NextflowSeconds(table.At(i, "realtime"));
    const auto submit = NextflowMoment(table.At(i, "submit"));
    if (!ending || !runtime || !submit) continue;
    TraceRun run;
    run.same_source = true;
    const std::string_view process = table.At(i, "process");
    run.group = process.empty() ? WithoutTag(table.At(i, "name")) : std::string(process);
    run.submit_s = *submit;
    const auto complete = NextflowMoment(table.At(i, "complete"));
    const auto duration = NextflowSeconds(table.At(i, "duration"));
    run.end_s = complete ? *complete : *submit + std::max(duration.value_or(0), *runtime);
    run.runtime_s = *runtime;
    run.cores = NotZero(Number(table.At(i, "cpus"))).value_or(1);
    run.ending = *ending;
    run.memory_bytes = NotZero(Amount(table.At(i, "peak_rss")));
    run.requested_memory_bytes = NotZero(Amount(table.At(i, "memory")));
    run.requested_walltime_s = NotZero(NextflowSeconds(table.At(i, "time")));
    runs.push_back(std::move(run));
  }
  return runs;
}

Runs ReadSnakemake(std::string_view text) {
  const Table table(text, Table::Separator(text));
  if (!table.Has("max_rss") || !table.Has("s") || !table.Has("rule")) return std::nullopt;
  std::vector<TraceRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto runtime = Number(table.At(i, "s"));
    if (!runtime) continue;
    TraceRun run;
    run.same_source = true;
    run.group = std::string(table.At(i, "rule"));
    const auto threads =
        Number(table.At(i, table.Has("threads_per_rule") ? "threads_per_rule" : "threads"));
    run.runtime_s = *runtime;
    run.cores = NotZero(threads).value_or(1);
    if (const auto mib = NotZero(Number(table.At(i, "max_rss")))) run.memory_bytes = *mib * kMiB;
    runs.push_back(std::move(run));
  }
  return runs;
}

Runs ReadSpark(std::string_view text) {
  const Table table(text, Table::Separator(text));
  if (!table.Has("gross_runtime") || !table.Has("machine_type")) return std::nullopt;
  std::vector<TraceRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto runtime = Number(table.At(i, "gross_runtime"));
    if (!runtime) continue;
    TraceRun run;
    run.same_source = true;
    run.group = std::string(table.At(i, "machine_type")) + " x " +
                std::string(table.At(i, "instance_count"));
    run.runtime_s = *runtime;
    run.cores = NotZero(Number(table.At(i, "slots"))).value_or(1);
    run.input_size = NotZero(Number(table.At(i, "data_size_MB")));
    runs.push_back(std::move(run));
  }
  return runs;
}

namespace {

using Json = nlohmann::json;

// What an instance's specification says of a task.
struct Specified {
  std::string name;
  double input = 0;  // bytes of its files
};
using Specifications = std::unordered_map<std::string, Specified>;

// The list under `key`; an empty one where there is none.
const Json& List(const Json& value, const char* key) {
  static const Json kNone = Json::array();
  if (!value.is_object()) return kNone;
  const auto found = value.find(key);
  return found != value.end() && found->is_array() ? *found : kNone;
}

Specifications ReadSpecifications(const Json& specification) {
  std::unordered_map<std::string, double> sizes;
  for (const Json& file : List(specification, "files")) {
    if (const auto size = Real(file, "sizeInBytes")) sizes[Text(file, "id")] = *size;
  }
  Specifications specified;
  for (const Json& task : List(specification, "tasks")) {
    Specified& one = specified[Text(task, "id")];
    one.name = Text(task, "name");
    for (const Json& file : List(task, "inputFiles")) {
      if (!file.is_string()) continue;
      if (const auto size = sizes.find(file.get<std::string>()); size != sizes.end())
        one.input += size->second;
    }
  }
  return specified;
}

// Some instances name tasks "kind_ID0000012" or "kind_00000012".
std::string KindOf(std::string name) {
  const auto mark = name.rfind('_');
  if (mark == std::string::npos || mark + 1 >= name.size()) return name;
  std::string_view rest = std::string_view(name).substr(mark + 1);
  if (rest.starts_with("ID")) rest.remove_prefix(2);
  if (!rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos)
    name.resize(mark);
  return name;
}

std::optional<TraceRun> TaskRun(const Json& task, const Specifications& specified) {
  const auto runtime = Real(task, "runtimeInSeconds");
  if (!runtime || *runtime < 0) return std::nullopt;
  TraceRun run;
  run.same_source = true;
  const std::string id = Text(task, "id");
  const auto found = specified.find(id);
  const bool named = found != specified.end() && !found->second.name.empty();
  run.group = KindOf(named ? found->second.name : id);
  run.runtime_s = *runtime;
  run.cores = NotZero(Real(task, "coreCount")).value_or(1);
  run.memory_bytes = NotZero(Real(task, "memoryInBytes"));
  if (found != specified.end()) run.input_size = NotZero(found->second.input);
  return run;
}

}  // namespace

Runs ReadWfInstance(std::string_view text) {
  const auto document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("workflow")) return std::nullopt;
  const Json& workflow = document["workflow"];
  if (!workflow.is_object() || !workflow.contains("execution") ||
      !workflow.contains("specification"))
    return std::nullopt;
  if (!workflow["specification"].is_object() || !workflow["execution"].is_object())
    return std::nullopt;
  const Specifications specified = ReadSpecifications(workflow["specification"]);
  std::vector<TraceRun> runs;
  for (const Json& task : List(workflow["execution"], "tasks")) {
    if (auto run = TaskRun(task, specified)) runs.push_back(std::move(*run));
  }
  return runs;
}

namespace {

// Annotated CSV has lines of '#' annotations before the header.
std::string_view WithoutAnnotations(std::string_view text) {
  while (text.starts_with('#')) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

// Times and peak of a memory series.
std::optional<TraceRun> SeriesRun(const Table& series) {
  TraceRun run;
  run.same_source = true;
  double peak = 0;
  double first = 0;
  double last = 0;
  for (std::size_t i = 0; i < series.rows(); ++i) {
    const auto when = Moment(series.At(i, "_time"));
    const auto mib = Number(series.At(i, "_value"));
    if (!when || !mib) continue;
    first = first == 0 ? *when : std::min(first, *when);
    last = std::max(last, *when);
    peak = std::max(peak, *mib);
  }
  if (first == 0 || peak <= 0) return std::nullopt;
  run.submit_s = first;
  run.end_s = last;
  run.runtime_s = std::max(last - first, 1.0);
  run.memory_bytes = peak * kMiB;
  return run;
}

}  // namespace

std::optional<TraceRun> ReadMemorySeries(std::string_view memory, std::string_view metadata) {
  const Table series(WithoutAnnotations(memory), ',');
  if (!series.Has("_time") || !series.Has("_value") || series.rows() == 0) return std::nullopt;
  auto run = SeriesRun(series);
  if (!run) return std::nullopt;
  const Table facts(WithoutAnnotations(metadata), ',');
  for (std::size_t i = 0; i < facts.rows(); ++i) {
    const std::string_view field = facts.At(i, "_field");
    const auto value = NotZero(Number(facts.At(i, "_value")));
    if (field == "files_input_total_size") run->input_size = value;
    if (field == "max_cpus") run->cores = value.value_or(1);
    if (field == "max_mem") run->requested_memory_bytes = value;
  }
  return run;
}

}  // namespace expanse::bench
