#include "workload/kubernetes/kubernetes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace expanse::workload {
namespace {

using testing::HasSubstr;

const std::filesystem::path kCorpus =
    std::filesystem::path(EXPANSE_SOURCE_DIR) / "../../tests/corpus/kubernetes";

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

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

std::vector<std::filesystem::path> Manifests() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
    if (entry.path().extension() != ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Kubernetes, ReadsTheCorpusAsItsGoldenFilesSay) {
  ASSERT_GE(Manifests().size(), 50);
  for (const std::filesystem::path& path : Manifests()) {
    const std::string golden = path.string() + ".txt";
    const std::string shown = Render(ParseKubernetes(Read(path)));
    if (std::getenv("EXPANSE_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << shown;
    EXPECT_EQ(shown, Read(golden)) << path << ": run this program with EXPANSE_UPDATE_GOLDEN=1";
  }
}

TEST(Kubernetes, EveryValueStandsWhereItsPlaceSays) {
  for (const std::filesystem::path& path : Manifests()) {
    const std::string text = Read(path);
    const auto parsed = ParseKubernetes(text);
    if (!parsed) continue;
    for (const Part& part : parsed->parts) {
      for (const Setting& setting : part.settings) {
        const Place& place = setting.place;
        EXPECT_EQ(PlaceOf(text, place.begin, place.end), place) << path << setting.name;
        EXPECT_EQ(text.substr(place.begin, place.end - place.begin), setting.written);
      }
    }
  }
}

std::string Pod(std::string_view container) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - " +
         std::string(container) + "\n";
}

TEST(Kubernetes, VariablesInCommandsAreTheKubelets) {
  const auto parsed = ParseKubernetes(
      Pod("{name: c, command: [run, $(A), $$(A), \"$(A)-$(B)\", $(), $x], env: [{name: A, value: "
          "'1'}, {name: B, valueFrom: {}}, {name: C, value: $(A)2}]}"));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const Part& part = parsed->parts.front();
  const std::vector<Word> expected = {{"run"}, {"1"}, {"$(A)"}, {"1-$(B)", false}, {"$()"}, {"$x"}};
  EXPECT_EQ(part.commands.front().words, expected);
  EXPECT_EQ(part.environment, (std::map<std::string, std::string>{{"A", "1"}, {"C", "12"}}));
}

TEST(Kubernetes, AliasesCannotMakeMuchOfLittle) {
  std::string text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nx: &c {name: c, args: [" +
                     std::string(100'000, 'a') + "]}\nspec:\n  containers: [";
  for (int i = 0; i < 100'000; ++i) text += "*c,";
  const auto parsed = ParseKubernetes(text + "]\n");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().reason, "too_large");

  std::string bomb = "apiVersion: x.y/v1\nkind: Bomb\na0: &a0 [x]\n";
  for (int i = 1; i < 60; ++i)
    bomb += fmt::format("a{}: &a{} [*a{}, *a{}, *a{}]\n", i, i, i - 1, i - 1, i - 1);
  EXPECT_EQ(ParseKubernetes(bomb).error().reason, "not_a_workload");

  std::string merges = "apiVersion: v1\nkind: Pod\nm0: &m0 {x: 1}\n";
  for (int i = 1; i < 60; ++i)
    merges += fmt::format("m{}: &m{} {{<<: [*m{}, *m{}, *m{}, *m{}]}}\n", i, i, i - 1, i - 1, i - 1,
                          i - 1);
  merges += "spec: {containers: [*m59, *m58, *m57]}\n";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(ParseKubernetes(merges).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Kubernetes, LargeManifestsAreReadInLinearTime) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "---\n" + Read(kCorpus / "deployment-documents.yaml");
  const auto parsed = ParseKubernetes(text);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->parts.size(), 1200);
}

TEST(Kubernetes, NotesAreFew) {
  std::string text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n";
  for (int i = 0; i < 1000; ++i)
    text += fmt::format("  - {{name: c{}, resources: {{limits: {{rdma/x: 1}}}}}}\n", i);
  const auto parsed = ParseKubernetes(text);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->notes.size(), 200);
}

TEST(Kubernetes, RefusalsSayWhatWasFound) {
  EXPECT_EQ(ParseKubernetes("").error().message, "nothing in it");
  EXPECT_EQ(ParseKubernetes("hello\n").error().message, "found only a text");
  EXPECT_THAT(ParseKubernetes(Read(kCorpus / "services-only.yaml")).error().message,
              HasSubstr("Service, ConfigMap, Thing (example.org/v1) without pod template"));
}

}  // namespace
}  // namespace expanse::workload
