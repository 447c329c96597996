#include "cli/patch_check.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "workload/parse.h"
#include "workload/patch/unified_diff.h"

namespace expanse::cli {
namespace {

const std::string kManifest =
    "apiVersion: batch/v1\n"
    "kind: Job\n"
    "metadata:\n"
    "  name: train\n"
    "spec:\n"
    "  template:\n"
    "    spec:\n"
    "      containers:\n"
    "      - name: main\n"
    "        image: registry/train:1\n"
    "        command: [python, train.py]\n"
    "        resources:\n"
    "          requests:\n"
    "            memory: 16Gi\n";
const std::string kJobspec =
    "job \"etl\" {\n"
    "  group \"g\" {\n"
    "    task \"t\" {\n"
    "      driver = \"exec\"\n"
    "      config {\n"
    "        command = \"run.sh\"\n"
    "      }\n"
    "      resources {\n"
    "        memory = 4096\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

bool Passes(const std::string& path, const std::string& text, std::string_view from,
            std::string_view to) {
  return CheckChange(path, text, Replaced(text, from, to)).has_value();
}

TEST(CheckChange, TakesResourcesOfManifests) {
  const std::string limits = "            memory: 16Gi\n";
  EXPECT_TRUE(Passes("job.yaml", kManifest, "16Gi", "15Gi"));
  EXPECT_TRUE(Passes("job.yaml", kManifest, limits, limits + "          limits:\n  " + limits));
  EXPECT_TRUE(Passes("job.yaml", kManifest, limits, limits + "            cpu: \"2\"\n"));
  EXPECT_TRUE(
      Passes("job.yaml", kManifest, "    spec:\n", "    spec:\n      activeDeadlineSeconds: 60\n"));
}

TEST(CheckChange, RefusesAllElseOfManifests) {
  for (const char* to :
       {"        image: registry/evil:1\n", "        image: registry/train:1\n        env:\n",
        "        image: registry/train:1\n        securityContext:\n          privileged: true\n",
        "        image: registry/train:1\n        # ok\n", ""}) {
    EXPECT_FALSE(Passes("job.yaml", kManifest, "        image: registry/train:1\n", to)) << to;
  }
  EXPECT_FALSE(Passes("job.yaml", kManifest, "train.py", "other.py"));
  EXPECT_FALSE(Passes("job.yaml", kManifest, "spec:\n", "spec:\n  parallelism: 9\n"));
  EXPECT_FALSE(Passes("job.yaml", kManifest, "    spec:\n",
                      "    spec:\n      hostNetwork: true\n      serviceAccountName: admin\n"));
}

TEST(CheckChange, TakesResourcesOfJobspecsAloneToo) {
  EXPECT_TRUE(Passes("a.nomad", kJobspec, "4096", "512"));
  EXPECT_TRUE(Passes("a.nomad", kJobspec, "memory = 4096\n", "memory = 4096\n        cores = 2\n"));
  EXPECT_FALSE(Passes("a.nomad", kJobspec, "run.sh", "evil.sh"));
  EXPECT_FALSE(Passes("a.nomad", kJobspec, "\"exec\"", "\"raw_exec\""));
  EXPECT_FALSE(
      Passes("a.nomad", kJobspec, "memory = 4096\n", "memory = 4096\n      }\n      artifact {\n"));
  const std::string variable =
      "variable \"m\" {\n  default = 4096\n}\n" + Replaced(kJobspec, "4096", "var.m");
  EXPECT_TRUE(Passes("a.nomad", variable, "4096", "512"));
  const std::string local =
      "locals {\n  size = \"4096\"\n  other = 1\n}\n" + Replaced(kJobspec, "4096", "local.size");
  EXPECT_TRUE(Passes("a.nomad", local, "4096", "512"));
  EXPECT_FALSE(Passes("a.nomad", local, "other = 1", "other = 2"));
  EXPECT_FALSE(Passes("a.nomad", variable, "4096", "\"x\""));
}

TEST(CheckChange, WhiteSpaceOfScriptsStays) {
  const std::string script = "#!/bin/sh\n#SBATCH --mem=4G\nA=1 srun ./x\n";
  EXPECT_TRUE(Passes("a.sbatch", script, "4G", "3G"));
  EXPECT_FALSE(Passes("a.sbatch", script, "A=1", "A= 1"));
  EXPECT_FALSE(Passes("a.sbatch", script, "A=1 srun", "A=1\nsrun"));
}

TEST(CheckChange, SourceFilesAreNeverChanged) {
  EXPECT_FALSE(Passes("a.py", "x = 1\n", "1", "2"));
  EXPECT_FALSE(Passes("notes", "x = 1\n", "1", "2"));  // no parser reads it
}

// Whatever the patcher makes of the files of the parsers' corpora is taken.
TEST(CheckChange, TakesEveryEditOfTheCorpora) {
  std::size_t edits = 0;
  for (const char* folder : {"sbatch", "kubernetes", "nomad"}) {
    const auto corpus = std::filesystem::path(EXPANSE_SOURCE_DIR) / "../../tests/corpus" / folder;
    ASSERT_TRUE(std::filesystem::is_directory(corpus)) << corpus;
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
      const auto text = base::ReadFile(entry.path());
      if (!text) continue;
      const auto read = workload::Parse(entry.path().string(), *text);
      if (!read) continue;
      for (std::size_t part = 0; part < read->parts.size(); ++part) {
        for (const auto& [quantity, amount] :
             {std::pair(workload::Quantity::kMemory, 7.0 * (std::uint64_t{1} << 30)),
              std::pair(workload::Quantity::kCpu, 6.0), std::pair(workload::Quantity::kGpu, 2.0),
              std::pair(workload::Quantity::kWalltime, 7200.0)}) {
          const auto plan =
              workload::PlanEdits(entry.path().string(), *text, *read, {{part, quantity, amount}});
          if (!plan || plan->empty()) continue;
          const auto patched = workload::ApplyEdits(*text, *plan);
          ASSERT_TRUE(patched);
          ++edits;
          EXPECT_TRUE(CheckChange(entry.path().string(), *text, *patched))
              << entry.path() << " part " << part << " " << workload::Name(quantity) << "\n"
              << workload::MakeUnifiedDiff("file", *text, *patched);
        }
      }
    }
  }
  EXPECT_GT(edits, 100U);
}

}  // namespace
}  // namespace expanse::cli
