// Whole scripts of many kinds, each of which a real Slurm has read too
// (tests/e2e/workload_sbatch_test): what is read of them, and that they can be changed and read
// again.
#include <gtest/gtest.h>

#include <cmath>

#include "workload/patch/edit.h"
#include "workload/sbatch/sbatch.h"
#include "workload/submission_testing.h"

namespace expanse::workload {
namespace {

std::vector<std::filesystem::path> Corpus() {
  return CorpusFiles(std::filesystem::path(EXPANSE_SOURCE_DIR) / "../../tests/corpus/sbatch");
}

std::optional<double> Amount(const Part& part, Quantity quantity) {
  const Request& request = part.request;
  if (quantity == Quantity::kCpu) return request.cpu_cores;
  if (quantity == Quantity::kGpu) return request.gpu_count;
  if (quantity == Quantity::kMemory)
    return request.memory_bytes ? std::optional(static_cast<double>(*request.memory_bytes))
                                : std::nullopt;
  return request.walltime_s ? std::optional(static_cast<double>(*request.walltime_s))
                            : std::nullopt;
}

constexpr Quantity kQuantities[] = {Quantity::kCpu, Quantity::kMemory, Quantity::kGpu,
                                    Quantity::kWalltime};

TEST(SbatchCorpus, ReadsAsTheGoldenFilesSay) {
  ASSERT_GE(Corpus().size(), 80U);
  for (const auto& path : Corpus()) ExpectGolden(path, ParseSbatch(Read(path)));
}

TEST(SbatchCorpus, EveryValueStandsWhereItsPlaceSays) {
  for (const auto& path : Corpus()) {
    const auto parsed = ParseSbatch(Read(path));
    if (parsed) ExpectPlaces(path, *parsed);
  }
}

TEST(SbatchCorpus, AskingForWhatIsAskedChangesNothing) {
  for (const auto& path : Corpus()) {
    const std::string text = Read(path);
    const auto parsed = ParseSbatch(text);
    if (!parsed) continue;
    std::vector<Wanted> wanted;
    for (std::size_t i = 0; i < parsed->parts.size(); ++i)
      for (const Quantity quantity : kQuantities)
        if (const auto amount = Amount(parsed->parts[i], quantity))
          wanted.push_back({i, quantity, *amount});
    const auto edits = PlanSbatchEdits(text, *parsed, wanted);
    ASSERT_TRUE(edits) << path << ": " << edits.error().message;
    EXPECT_TRUE(edits->empty()) << path;
  }
}

// Every part of every script, every quantity, smaller and larger: an edit that does what it says
// and nothing else, or a reason.
TEST(SbatchCorpus, ChangesDoWhatTheySayOrSayWhyNot) {
  int changed = 0;
  int refused = 0;
  for (const auto& path : Corpus()) {
    const std::string text = Read(path);
    const auto parsed = ParseSbatch(text);
    if (!parsed) continue;
    for (std::size_t i = 0; i < parsed->parts.size(); ++i) {
      for (const Quantity quantity : kQuantities) {
        for (const double factor : {1.0, 3.0, 40.0}) {
          const double unit = quantity == Quantity::kMemory     ? std::ldexp(777, 20)
                              : quantity == Quantity::kWalltime ? 1000
                                                                : 1;
          const double amount = unit * factor;
          const auto edits = PlanSbatchEdits(text, *parsed, {{i, quantity, amount}});
          if (!edits) {
            EXPECT_TRUE(edits.error().reason.starts_with("patch.")) << edits.error().message;
            ++refused;
            continue;
          }
          ++changed;
          const auto after = ParseSbatch(*ApplyEdits(text, *edits));
          ASSERT_TRUE(after) << path;
          for (std::size_t k = 0; k < parsed->parts.size(); ++k) {
            for (const Quantity other : kQuantities) {
              const auto before = Amount(parsed->parts[k], other);
              const auto now = Amount(after->parts[k], other);
              if (k == i && other == quantity) {
                EXPECT_GE(now.value_or(-1), amount) << path;
              } else if (before && *before > 0) {
                EXPECT_GE(now.value_or(-1), *before) << path << " " << Name(other);
                EXPECT_LE(now.value_or(-1), *before * 1.3 + 40) << path << " " << Name(other);
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(changed, 600);
  EXPECT_LT(refused, changed / 4);
}

}  // namespace
}  // namespace expanse::workload
