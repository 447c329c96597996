#include "intelligence/diagnose/request_lines.h"

#include <gtest/gtest.h>

namespace expanse::intelligence::diagnose {
namespace {

using evidence::SourceType;
using workload::Quantity;

// "--mem at run.sh:3: #SBATCH --mem=8G", or "none".
std::string Found(const std::vector<SourceText>& sources, Quantity quantity) {
  for (const RequestLine& line : FindRequestLines(sources)) {
    if (line.quantity != quantity) continue;
    return line.option + " at " + line.path + ":" + std::to_string(line.line) + ": " + line.text;
  }
  return "none";
}

SourceText Script(std::string body) {
  return {.path = "run.sh", .role = "script", .data = "#!/bin/bash\n" + std::move(body)};
}

TEST(RequestLines, NameTheOptionAndTheLine) {
  const std::vector<SourceText> sources = {
      Script("#SBATCH --job-name=a\n#SBATCH --mem=8G   # enough\n#SBATCH -t 01:00:00\n"
             "#SBATCH --gres=gpu:a100:2\nsrun ./a\n")};
  EXPECT_EQ(Found(sources, Quantity::kMemory), "--mem at run.sh:3: #SBATCH --mem=8G   # enough");
  EXPECT_EQ(Found(sources, Quantity::kWalltime), "--time at run.sh:4: #SBATCH -t 01:00:00");
  EXPECT_EQ(Found(sources, Quantity::kGpu), "--gres at run.sh:5: #SBATCH --gres=gpu:a100:2");
  EXPECT_EQ(Found(sources, Quantity::kTasks), "none");
}

TEST(RequestLines, TakeWhatIsInForce) {
  const std::vector<SourceText> sources = {
      Script("#SBATCH --mem=8G\n#SBATCH --mem=16G\necho\n#SBATCH --mem=32G\n")};
  EXPECT_EQ(Found(sources, Quantity::kMemory), "--mem at run.sh:3: #SBATCH --mem=16G");
}

TEST(RequestLines, LookPastSourcesThatAskForNothing) {
  const std::vector<SourceText> sources = {
      {.path = "train.py", .role = "argument", .data = "import torch\nMEM = '--mem=4G'\n"},
      Script("#SBATCH --mem-per-cpu=2G\n./a\n")};
  EXPECT_EQ(Found(sources, Quantity::kMemory),
            "--mem-per-cpu at run.sh:2: #SBATCH --mem-per-cpu=2G");
}

TEST(RequestLines, PreferTheLimitOfAManifest) {
  const std::vector<SourceText> sources = {{.path = "job.yaml", .role = "script", .data = R"(
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  template:
    spec:
      containers:
        - name: main
          resources:
            requests:
              memory: 1Gi
            limits:
              memory: 2Gi
)"}};
  EXPECT_EQ(Found(sources, Quantity::kMemory),
            "resources.limits.memory at job.yaml:14:               memory: 2Gi");
}

TEST(RequestLines, SayNothingWhereSeveralPartsAsk) {
  const std::vector<SourceText> sources = {
      Script("#SBATCH --mem=8G\n#SBATCH hetjob\n#SBATCH --mem=16G\nsrun ./a\n")};
  EXPECT_EQ(Found(sources, Quantity::kMemory), "none");
}

TEST(RequestLines, NothingOfNothing) {
  EXPECT_TRUE(FindRequestLines({}).empty());
  EXPECT_TRUE(FindRequestLines({{.path = "a", .role = "script", .data = ""}}).empty());
  EXPECT_TRUE(FindRequestLines({Script(std::string(1U << 20, 'x'))}).empty());
}

TEST(OptionOf, NamesWhatPeopleOfTheSchedulerKnow) {
  EXPECT_EQ(OptionOf(SourceType::kSlurm, Quantity::kMemory), "--mem");
  EXPECT_EQ(OptionOf(SourceType::kSlurm, Quantity::kWalltime), "--time");
  EXPECT_EQ(OptionOf(SourceType::kSlurm, Quantity::kNodes), "");
  EXPECT_EQ(OptionOf(SourceType::kKubernetes, Quantity::kMemory), "resources.limits.memory");
  EXPECT_EQ(OptionOf(SourceType::kNomad, Quantity::kMemory), "resources.memory");
  EXPECT_EQ(OptionOf(SourceType::kHost, Quantity::kMemory), "");
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
