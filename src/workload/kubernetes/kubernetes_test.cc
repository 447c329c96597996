#include "workload/kubernetes/kubernetes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "workload/submission_testing.h"

namespace expanse::workload {
namespace {

using testing::HasSubstr;

const std::filesystem::path kCorpus =
    std::filesystem::path(EXPANSE_SOURCE_DIR) / "../../tests/corpus/kubernetes";

std::vector<std::filesystem::path> Manifests() { return CorpusFiles(kCorpus); }

TEST(Kubernetes, ReadsTheCorpusAsItsGoldenFilesSay) {
  ASSERT_GE(Manifests().size(), 50);
  for (const std::filesystem::path& path : Manifests())
    ExpectGolden(path, ParseKubernetes(Read(path)));
}

TEST(Kubernetes, EveryValueStandsWhereItsPlaceSays) {
  for (const std::filesystem::path& path : Manifests()) {
    const auto parsed = ParseKubernetes(Read(path));
    if (parsed) ExpectPlaces(path, *parsed);
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

  // Long names and values that many places share.
  const std::string big(1'000'000, 'b');
  std::string shared =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: &b " + big + "}\nspec:\n  containers:\n";
  for (int i = 0; i < 5'000; ++i)
    shared += "  - {name: *b, image: *b, resources: {limits: {memory: *b, cpu: *b}}}\n";
  const auto many = ParseKubernetes(shared);
  ASSERT_TRUE(many.has_value()) << many.error().message;
  EXPECT_EQ(many->parts.size(), 5'000);
  EXPECT_EQ(many->parts.back().name.size(), 1024);
  EXPECT_EQ(many->parts.back().settings.front().written, "");

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
  EXPECT_EQ(ParseKubernetes(merges).error().reason, "too_large");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Kubernetes, VariablesCannotMakeMuchOfLittle) {
  std::string text = "{name: c, args: [$(A99)], env: [{name: A0, value: 0123456789}";
  for (int i = 1; i < 100; ++i)
    text += fmt::format(", {{name: A{}, value: $(A{})$(A{})}}", i, i - 1, i - 1);
  const auto parsed = ParseKubernetes(Pod(text + "]}"));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  std::size_t bytes = 0;
  for (const auto& [name, value] : parsed->parts.front().environment) bytes += value.size();
  EXPECT_LT(bytes, std::size_t{8} << 20);
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
