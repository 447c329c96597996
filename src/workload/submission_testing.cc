#include "workload/submission_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace expanse::workload {
namespace {

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = '~';
  }
  return text;
}

void Field(std::string& out, std::string_view name, const std::string& value) {
  if (!value.empty()) out += fmt::format(" {}={}", name, value);
}

template <typename T>
void Field(std::string& out, std::string_view name, const std::optional<T>& value) {
  if (value) out += fmt::format(" {}={}", name, *value);
}

std::string Render(const Setting& setting) {
  std::string out = fmt::format("    {}:{} {} {} = {}", setting.place.line, setting.place.column,
                                Name(setting.quantity), setting.name, setting.written);
  if (setting.value) out += fmt::format(" ({})", *setting.value);
  Field(out, "unit", setting.unit);
  Field(out, "unresolved", setting.unresolved);
  if (!setting.effective) out += " ignored";
  return out + "\n";
}

std::string Render(const Part& part) {
  std::string out = fmt::format("  {} {}", part.kind, part.workload);
  Field(out, "namespace", part.name_space);
  Field(out, "group", part.group);
  Field(out, "container", part.name);
  Field(out, "image", part.image);
  if (part.is_init) out += " init";
  out += fmt::format(" replicas={}", part.replicas);
  Field(out, "array", part.array_size);
  const Request& request = part.request;
  out += "\n    asks:";
  Field(out, "cpu", request.cpu_cores);
  Field(out, "memory", request.memory_bytes);
  Field(out, "gpu", request.gpu_count);
  Field(out, "gpu_type", request.gpu_type);
  Field(out, "gpu_memory", request.gpu_memory_bytes);
  Field(out, "walltime", request.walltime_s);
  Field(out, "tasks", request.tasks);
  out += "\n";
  for (const Setting& setting : part.settings) out += Render(setting);
  for (const Command& command : part.commands) {
    out += fmt::format("    runs, line {}:", command.place.line);
    for (const std::string& word : command.launcher) out += fmt::format(" <{}>", word);
    for (const Word& word : command.words)
      out += fmt::format(" [{}]{}", OneLine(word.text), word.resolved ? "" : "?");
    out += "\n";
  }
  for (const auto& [name, value] : part.environment)
    out += fmt::format("    ${}={}\n", name, value);
  for (const auto& [name, value] : part.annotations)
    out += fmt::format("    #{}={}\n", name, OneLine(value));
  for (const Insertion& insertion : part.insertions)
    out += fmt::format("    may write {} at {}: {}N{}\n", Name(insertion.quantity),
                       insertion.offset, OneLine(insertion.before), OneLine(insertion.after));
  return out;
}

}  // namespace

std::string Render(const Parsed<Submission>& parsed) {
  if (!parsed)
    return fmt::format("refused, {}:{}: {}: {}\n", parsed.error().line, parsed.error().column,
                       parsed.error().reason, parsed.error().message);
  std::string out = fmt::format("{}\n", parsed->name);
  for (const Part& part : parsed->parts) out += Render(part);
  for (const Note& note : parsed->notes)
    out += fmt::format("  line {}: {}: {}\n", note.line, note.reason, note.message);
  return out;
}

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::filesystem::path> CorpusFiles(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void ExpectGolden(const std::filesystem::path& input, const Parsed<Submission>& parsed) {
  const std::string golden = input.string() + ".txt";
  const std::string shown = Render(parsed);
  if (std::getenv("EXPANSE_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << shown;
  EXPECT_EQ(shown, Read(golden)) << input << ": run this program with EXPANSE_UPDATE_GOLDEN=1";
}

void ExpectPlaces(const std::filesystem::path& input, const Submission& submission) {
  const std::string text = Read(input);
  for (const Part& part : submission.parts) {
    for (const Setting& setting : part.settings) {
      const Place& place = setting.place;
      EXPECT_EQ(PlaceOf(text, place.begin, place.end), place) << input << setting.name;
      EXPECT_EQ(text.substr(place.begin, place.end - place.begin), setting.written) << input;
    }
  }
}

}  // namespace expanse::workload
