// Whole jobspecs of many kinds: what is read of them, and that they can be changed and read again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/nomad/nomad.h"
#include "workload/submission_testing.h"

namespace expanse::workload {
namespace {

std::vector<std::filesystem::path> Corpus() {
  return CorpusFiles(std::filesystem::path(EXPANSE_SOURCE_DIR) / "../../tests/corpus/nomad");
}

TEST(NomadCorpus, ReadsAsTheGoldenFilesSay) {
  ASSERT_GE(Corpus().size(), 50u);
  for (const auto& path : Corpus()) ExpectGolden(path, ParseNomad(Read(path)));
}

TEST(NomadCorpus, EveryValueStandsWhereItsPlaceSays) {
  for (const auto& path : Corpus()) {
    const auto parsed = ParseNomad(Read(path));
    if (parsed) ExpectPlaces(path, *parsed);
  }
}

TEST(NomadCorpus, AskingForWhatIsAskedChangesNothing) {
  for (const auto& path : Corpus()) {
    const std::string text = Read(path);
    const auto parsed = ParseNomad(text);
    if (!parsed) continue;
    for (std::size_t i = 0; i < parsed->parts.size(); ++i) {
      const Request& request = parsed->parts[i].request;
      std::vector<Wanted> wanted;
      if (request.memory_bytes)
        wanted.push_back({i, Quantity::kMemory, static_cast<double>(*request.memory_bytes)});
      if (request.cpu_cores) wanted.push_back({i, Quantity::kCpu, *request.cpu_cores});
      const auto edits = PlanNomadEdits(text, *parsed, wanted);
      ASSERT_TRUE(edits) << path << ": " << edits.error().message;
      EXPECT_EQ(ApplyEdits(text, *edits), text) << path;
    }
  }
}

// Memory that is written, or missing, can be changed everywhere but where its value is not the
// file's own; the edit is what was asked for, and nothing else changes.
TEST(NomadCorpus, MemoryIsChangedOrRefusedWithAReason) {
  std::vector<std::string> refused;
  int changed = 0;
  for (const auto& path : Corpus()) {
    const std::string text = Read(path);
    const auto parsed = ParseNomad(text);
    if (!parsed) continue;
    for (std::size_t i = 0; i < parsed->parts.size(); ++i) {
      const std::uint64_t wanted = std::uint64_t{4321} << 20;
      const auto edits =
          PlanNomadEdits(text, *parsed, {{i, Quantity::kMemory, static_cast<double>(wanted)}});
      if (!edits) {
        refused.push_back(path.stem().stem().string() + " " + edits.error().reason);
        continue;
      }
      ++changed;
      const auto again = ParseNomad(*ApplyEdits(text, *edits));
      ASSERT_TRUE(again) << path;
      for (std::size_t j = 0; j < again->parts.size(); ++j) {
        Request expected = parsed->parts[j].request;
        if (j == i) expected.memory_bytes = wanted;
        EXPECT_EQ(again->parts[j].request, expected) << path;
      }
    }
  }
  EXPECT_EQ(changed, 41);
  EXPECT_THAT(refused, testing::ElementsAre(
                           "conditional patch.unresolved", "dynamic-groups patch.unresolved",
                           "dynamic-groups patch.unresolved", "dynamic-tasks patch.unresolved",
                           "dynamic-tasks patch.unresolved", "dynamic-tasks patch.unresolved",
                           "envsubst patch.unresolved", "functions patch.unresolved",
                           "jinja patch.unresolved", "levant patch.unresolved",
                           "locals-cycle patch.unresolved", "locals patch.unresolved",
                           "runtime-values patch.unresolved", "splat-and-index patch.unresolved",
                           "variables-unset patch.unresolved", "variables patch.unresolved",
                           "wrong-amounts patch.unresolved"));
}

}  // namespace
}  // namespace expanse::workload
