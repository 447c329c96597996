// What the workload parsers make of the files of a folder: one JSON line a file with its kind and,
// for every part, the requested resources, every setting with its place, and the commands; or why
// it is refused. On stderr: counts and speed. With --roundtrip every unchanged request is written
// back, which must give the same bytes (else the exit status is 1).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"
#include "workload/parse.h"

namespace {

using namespace expanse;
using namespace expanse::workload;
using Json = nlohmann::ordered_json;

struct Figures {
  std::map<std::string, std::size_t> kinds;     // "sbatch", "kubernetes/Job"
  std::map<std::string, std::size_t> refusals;  // by reason
  std::map<std::string, std::size_t> notes;     // by reason
  std::size_t files = 0, unreadable = 0, bytes = 0;
  std::size_t settings = 0, unresolved = 0;
  std::size_t written_back = 0, changed = 0;
  double seconds = 0;
};

Json ToJson(const Setting& setting) {
  Json json{{"quantity", Name(setting.quantity)},
            {"per", Name(setting.per)},
            {"bound", setting.bound == Bound::kRequest ? "request" : "limit"},
            {"name", setting.name},
            {"written", setting.written}};
  if (setting.value)
    json["value"] = *setting.value;
  else
    json["unresolved"] = setting.unresolved;
  if (setting.unit) json["unit"] = *setting.unit;
  if (!setting.gpu_type.empty()) json["gpu_type"] = setting.gpu_type;
  json["line"] = setting.place.line;
  json["column"] = setting.place.column;
  json["begin"] = setting.place.begin;
  json["end"] = setting.place.end;
  json["effective"] = setting.effective;
  return json;
}

Json ToJson(const Request& request) {
  Json json = Json::object();
  const auto set = [&](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  set("cpu_cores", request.cpu_cores);
  set("memory_bytes", request.memory_bytes);
  set("gpu_count", request.gpu_count);
  if (!request.gpu_type.empty()) json["gpu_type"] = request.gpu_type;
  set("gpu_memory_bytes", request.gpu_memory_bytes);
  set("walltime_s", request.walltime_s);
  set("nodes", request.nodes);
  set("tasks", request.tasks);
  if (request.exclusive) json["exclusive"] = true;
  return json;
}

Json ToJson(const Command& command) {
  Json words = Json::array();
  bool resolved = true;
  for (const Word& word : command.words) {
    words.push_back(word.text);
    resolved &= word.resolved;
  }
  Json json{{"line", command.place.line}, {"words", std::move(words)}};
  if (!resolved) json["unresolved"] = true;
  if (!command.launcher.empty()) json["launcher"] = command.launcher;
  return json;
}

Json ToJson(const Part& part) {
  Json json{{"kind", part.kind}};
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) json[name] = value;
  };
  set("workload", part.workload);
  set("namespace", part.name_space);
  set("group", part.group);
  set("name", part.name);
  set("image", part.image);
  if (part.is_init) json["init"] = true;
  if (part.replicas != 1) json["replicas"] = part.replicas;
  if (part.array_size) json["array_size"] = *part.array_size;
  json["request"] = ToJson(part.request);
  json["settings"] = Json::array();
  for (const Setting& setting : part.settings) json["settings"].push_back(ToJson(setting));
  json["commands"] = Json::array();
  for (const Command& command : part.commands) json["commands"].push_back(ToJson(command));
  if (!part.environment.empty()) json["environment"] = part.environment;
  if (!part.annotations.empty()) json["annotations"] = part.annotations;
  return json;
}

Json ToJson(const Submission& submission) {
  Json json{{"kind", Name(submission.format)}};
  if (!submission.language.empty()) json["language"] = submission.language;
  json["name"] = submission.name;
  json["parts"] = Json::array();
  for (const Part& part : submission.parts) json["parts"].push_back(ToJson(part));
  json["files"] = submission.files;
  json["outputs"] = submission.outputs;
  json["notes"] = Json::array();
  for (const Note& note : submission.notes)
    json["notes"].push_back(
        {{"line", note.line}, {"reason", note.reason}, {"message", note.message}});
  return json;
}

// What every part asks for now.
std::vector<Wanted> OwnRequest(const Submission& submission) {
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i < submission.parts.size(); ++i) {
    const Request& request = submission.parts[i].request;
    const auto add = [&](Quantity quantity, const auto& amount) {
      if (amount) wanted.push_back({i, quantity, static_cast<double>(*amount)});
    };
    add(Quantity::kCpu, request.cpu_cores);
    add(Quantity::kMemory, request.memory_bytes);
    add(Quantity::kGpu, request.gpu_count);
    add(Quantity::kWalltime, request.walltime_s);
  }
  return wanted;
}

// "same", or what went wrong.
std::string WriteBack(const std::string& path, const std::string& text,
                      const Submission& submission, const ParseOptions& options) {
  const auto edits = PlanEdits(path, text, submission, OwnRequest(submission), options);
  if (!edits) return edits.error().reason + ": " + edits.error().message;
  const auto edited = ApplyEdits(text, *edits);
  if (!edited) return edited.error().reason;
  return *edited == text ? "same" : fmt::format("changed by {} edits", edits->size());
}

void Count(const Submission& submission, Figures& figures) {
  std::string kind(Name(submission.format));
  if (submission.format == Format::kKubernetes && !submission.parts.empty())
    kind += "/" + submission.parts.front().kind;
  if (submission.format == Format::kSource) kind += "/" + submission.language;
  ++figures.kinds[kind];
  for (const Note& note : submission.notes) ++figures.notes[note.reason];
  for (const Part& part : submission.parts) {
    figures.settings += part.settings.size();
    for (const Setting& setting : part.settings) figures.unresolved += !setting.value;
  }
}

void ParseFile(const std::string& path, const std::string& name, const ParseOptions& options,
               bool roundtrip, Figures& figures) {
  Json line{{"path", name}};
  const auto text = base::ReadFile(path, std::size_t{64} << 20);
  if (!text) {
    ++figures.unreadable;
    line["unreadable"] = text.error().message;
  } else {
    ++figures.files;
    figures.bytes += text->size();
    const auto begin = std::chrono::steady_clock::now();
    const auto parsed = Parse(path, *text, options);
    figures.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (parsed) {
      line.update(ToJson(*parsed));
      Count(*parsed, figures);
      if (roundtrip) {
        const std::string result = WriteBack(path, *text, *parsed, options);
        line["roundtrip"] = result;
        ++(result == "same" ? figures.written_back : figures.changed);
      }
    } else {
      const Refusal& refusal = parsed.error();
      ++figures.refusals[refusal.reason];
      line["refusal"] = {{"line", refusal.line},
                         {"column", refusal.column},
                         {"reason", refusal.reason},
                         {"message", refusal.message}};
    }
  }
  fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void PrintCounts(const char* title, const std::map<std::string, std::size_t>& counts) {
  if (counts.empty()) return;
  fmt::print(stderr, "{}\n", title);
  for (const auto& [name, count] : counts) fmt::print(stderr, "  {:<36}{:>8}\n", name, count);
}

void Print(const Figures& figures, bool roundtrip) {
  PrintCounts("parsed", figures.kinds);
  PrintCounts("refused", figures.refusals);
  PrintCounts("notes", figures.notes);
  fmt::print(stderr, "{} files, {} unreadable; {} settings, {} of them unresolved\n", figures.files,
             figures.unreadable, figures.settings, figures.unresolved);
  fmt::print(stderr, "{:.1f} MB in {:.3f} s: {:.1f} MB/s\n",
             static_cast<double>(figures.bytes) / 1e6, figures.seconds,
             figures.seconds > 0 ? static_cast<double>(figures.bytes) / 1e6 / figures.seconds : 0);
  if (roundtrip)
    fmt::print(stderr, "written back: {} with the same bytes, {} not\n", figures.written_back,
               figures.changed);
}

// Files below a folder (or one file), by name; nothing hidden and no index.csv.
std::vector<std::string> FilesBelow(const std::string& root) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_regular_file(root, error)) return {root};
  std::vector<std::string> files;
  fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (at->is_regular_file(ignored) && name != "index.csv") files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Reads every file of a folder as a workload and prints what it asks for"};
  std::string folder;
  std::vector<std::string> variables;
  bool roundtrip = false;
  app.add_option("folder", folder, "folder (or file) to read")->required();
  app.add_option("--variables", variables, "NAME=VALUE: values of Nomad's variables");
  app.add_flag("--roundtrip", roundtrip, "write every unchanged request back");
  CLI11_PARSE(app, argc, argv);
  ParseOptions options;
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) {
      fmt::print(stderr, "parse_bench: --variables {}: expected NAME=VALUE\n", variable);
      return 2;
    }
    options.variables[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  const std::vector<std::string> files = FilesBelow(folder);
  if (files.empty()) {
    fmt::print(stderr, "parse_bench: no files in {}\n", folder);
    return 1;
  }
  Figures figures;
  for (const std::string& file : files) {
    const std::string name =
        file == folder ? file : std::filesystem::path(file).lexically_relative(folder).string();
    ParseFile(file, name, options, roundtrip, figures);
  }
  Print(figures, roundtrip);
  return figures.changed == 0 ? 0 : 1;
}
