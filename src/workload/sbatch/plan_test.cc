#include <gtest/gtest.h>

#include "workload/patch/edit.h"
#include "workload/sbatch/sbatch.h"

namespace expanse::workload {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// The edited text, or the reason why there is none.
std::string Edited(const std::string& text, const std::vector<Wanted>& wanted) {
  const auto parsed = ParseSbatch(text);
  if (!parsed) return parsed.error().reason;
  const auto edits = PlanSbatchEdits(text, *parsed, wanted);
  if (!edits) return edits.error().reason;
  const auto edited = ApplyEdits(text, *edits);
  return edited ? *edited : edited.error().reason;
}

// The same for one line of options.
std::string EditedLine(const std::string& options, const std::vector<Wanted>& wanted) {
  const std::string head = "#!/bin/sh\n#SBATCH ";
  const std::string text = Edited(head + options + "\nhostname\n", wanted);
  if (!text.starts_with(head)) return text;
  return text.substr(head.size(), text.size() - head.size() - std::string("\nhostname\n").size());
}

Wanted Memory(double gib) { return {0, Quantity::kMemory, gib * kGiB}; }
Wanted Cpus(double cores) { return {0, Quantity::kCpu, cores}; }
Wanted Gpus(double devices) { return {0, Quantity::kGpu, devices}; }
Wanted Walltime(double seconds) { return {0, Quantity::kWalltime, seconds}; }

TEST(SbatchPlan, KeepsUnitAndSpelling) {
  EXPECT_EQ(EditedLine("--mem=128G", {Memory(15)}), "--mem=15G");
  EXPECT_EQ(EditedLine("--mem 128000 # much", {Memory(15)}), "--mem 15360 # much");
  EXPECT_EQ(EditedLine("--mem='128gb'", {Memory(15)}), "--mem='15gb'");
  EXPECT_EQ(EditedLine("--mem=1T", {Memory(200)}), "--mem=200G");
  EXPECT_EQ(EditedLine("--mem=0", {Memory(15)}), "--mem=15G");
  EXPECT_EQ(EditedLine("--mem=4G --mem=128G", {Memory(15)}), "--mem=4G --mem=15G");
  EXPECT_EQ(EditedLine("-t 1-00:00:00", {Walltime(7200)}), "-t 0-02:00:00");
  EXPECT_EQ(EditedLine("-t90", {Walltime(1800)}), "-t30");
  EXPECT_EQ(EditedLine("--time=2-0", {Walltime(86400 + 1800)}), "--time=1-0:30");
  EXPECT_EQ(EditedLine("--time=8:00:00", {Walltime(100 * 3600)}), "--time=100:00:00");
  EXPECT_EQ(EditedLine("-t UNLIMITED", {Walltime(3600)}), "-t 01:00:00");
  EXPECT_EQ(EditedLine("-t 600 --time-min=500", {Walltime(3600)}), "-t 60 --time-min=60");
  EXPECT_EQ(EditedLine("-c16 -t 5", {Cpus(3)}), "-c3 -t 5");
  EXPECT_EQ(EditedLine("--gres=gpu:a100:4,nvme:1", {Gpus(1)}), "--gres=gpu:a100:1,nvme:1");
  EXPECT_EQ(EditedLine("--gres=gpu", {Gpus(2)}), "--gres=gpu:2");
  EXPECT_EQ(EditedLine("--gres=gpu:a100", {Gpus(2)}), "--gres=gpu:a100:2");
  EXPECT_EQ(EditedLine("-G a100", {Gpus(2)}), "-G a100:2");
}

TEST(SbatchPlan, CountsPerNodeTaskCpuAndGpu) {
  EXPECT_EQ(EditedLine("-N 4 --mem=64G", {Memory(100)}), "-N 4 --mem=25G");
  EXPECT_EQ(EditedLine("-n 4 -c 2 --mem-per-cpu=8G", {Memory(16)}), "-n 4 -c 2 --mem-per-cpu=2G");
  EXPECT_EQ(EditedLine("-n 7 --mem-per-cpu=8G", {Memory(15)}), "-n 7 --mem-per-cpu=2195M");
  EXPECT_EQ(EditedLine("--gpus=4 --mem-per-gpu=64G", {Memory(40)}), "--gpus=4 --mem-per-gpu=10G");
  EXPECT_EQ(EditedLine("-n 4 -c 8", {Cpus(10)}), "-n 4 -c 3");
  EXPECT_EQ(EditedLine("-N 2 --gres=gpu:4", {Gpus(3)}), "-N 2 --gres=gpu:2");
  EXPECT_EQ(EditedLine("-n 4 --gpus-per-task=2", {Gpus(4)}), "-n 4 --gpus-per-task=1");
}

TEST(SbatchPlan, WhatIsNotWantedStaysAsItIs) {
  // Fewer CPUs with as much memory in all.
  EXPECT_EQ(EditedLine("-c 8 --mem-per-cpu=2G", {Cpus(4)}), "-c 4 --mem-per-cpu=4G");
  EXPECT_EQ(EditedLine("--gpus=4 --cpus-per-gpu=4 --mem-per-gpu=8G", {Gpus(2)}),
            "--gpus=2 --cpus-per-gpu=8 --mem-per-gpu=16G");
}

TEST(SbatchPlan, InsertsWhatIsMissing) {
  EXPECT_EQ(Edited("#!/bin/sh\n#SBATCH -t 5\n\nhostname\n", {Memory(2)}),
            "#!/bin/sh\n#SBATCH -t 5\n#SBATCH --mem=2G\n\nhostname\n");
  EXPECT_EQ(Edited("#!/bin/sh\nhostname\n", {Walltime(3600), Memory(1.5)}),
            "#!/bin/sh\n#SBATCH --mem=1536M\n#SBATCH --time=01:00:00\nhostname\n");
  EXPECT_EQ(Edited("#!/bin/sh", {Cpus(2)}), "#!/bin/sh\n#SBATCH --cpus-per-task=2");
  EXPECT_EQ(Edited("#!/bin/sh\r\n#SBATCH -t 5\r\nhostname\r\n", {Memory(2)}),
            "#!/bin/sh\r\n#SBATCH -t 5\r\n#SBATCH --mem=2G\r\nhostname\r\n");
}

TEST(SbatchPlan, InsertsInTheStyleOfTheScript) {
  EXPECT_EQ(EditedLine("--time 5 --job-name x", {Memory(2)}),
            "--time 5 --job-name x\n#SBATCH --mem 2G");
  EXPECT_EQ(EditedLine("-t 5", {Gpus(2)}), "-t 5\n#SBATCH --gres=gpu:2");
  EXPECT_EQ(EditedLine("-N 2", {Gpus(3)}), "-N 2\n#SBATCH --gpus=3");
}

TEST(SbatchPlan, KeepsOtherGenericResources) {
  EXPECT_EQ(EditedLine("--gres=nvme:1", {Gpus(2)}), "--gres=nvme:1\n#SBATCH --gpus=2");
}

TEST(SbatchPlan, WhatCannotBeAskedForInPartsIsNoEdit) {
  EXPECT_EQ(EditedLine("-n 8 -c 1", {Cpus(4)}), "-n 8 -c 1");
  EXPECT_EQ(EditedLine("-n 8 -c 3", {Cpus(4)}), "-n 8 -c 1");
}

TEST(SbatchPlan, ChangesOneComponentOfAHetJob) {
  const std::string head = "#!/bin/sh\n#SBATCH --mem=8G -c 4\n";
  const std::string text = head + "#SBATCH hetjob\n#SBATCH -c 2\nhostname\n";
  // The second starts with the memory of the first, and keeps it.
  EXPECT_EQ(Edited(text, {Memory(2)}),
            "#!/bin/sh\n#SBATCH --mem=2G -c 4\n#SBATCH hetjob\n#SBATCH -c 2\n"
            "#SBATCH --mem=8G\nhostname\n");
  EXPECT_EQ(Edited(text, {{1, Quantity::kMemory, 2 * kGiB}}),
            head + "#SBATCH hetjob\n#SBATCH -c 2\n#SBATCH --mem=2G\nhostname\n");
  EXPECT_EQ(Edited("#!/bin/sh\n#SBATCH -c 4\n#SBATCH hetjob\n#SBATCH -c 2\n", {Memory(2)}),
            "#!/bin/sh\n#SBATCH -c 4\n#SBATCH --mem-per-cpu=512M\n#SBATCH hetjob\n"
            "#SBATCH -c 2\n");
}

TEST(SbatchPlan, EditsForeignLines) {
  EXPECT_EQ(Edited("#!/bin/sh\n#PBS -l walltime=10:00:00,mem=8gb\nhostname\n",
                   {Memory(2), Walltime(3600)}),
            "#!/bin/sh\n#PBS -l walltime=01:00:00,mem=2gb\nhostname\n");
  // They count for all components.
  const std::string het = "#!/bin/sh\n#PBS -l walltime=90\n#SBATCH hetjob\nhostname\n";
  EXPECT_EQ(Edited(het, {Walltime(3600)}), "patch.not_reached");
  EXPECT_EQ(Edited(het, {Walltime(3600), {1, Quantity::kWalltime, 3600}}),
            "#!/bin/sh\n#PBS -l walltime=60\n#SBATCH hetjob\nhostname\n");
  // LSF counts KiB; what this would write is not what would be read.
  EXPECT_EQ(Edited("#!/bin/sh\n#BSUB -M 8000000\nhostname\n", {Memory(2)}), "patch.not_reached");
}

TEST(SbatchPlan, SaysWhyItCannot) {
  EXPECT_EQ(EditedLine("--mem=$MEM", {Memory(2)}), "patch.unresolved");
  EXPECT_EQ(EditedLine("-n 8", {Cpus(4)}), "patch.no_place");
  EXPECT_EQ(EditedLine("--gpus=a:1,b:1", {Gpus(1)}), "patch.no_place");
  EXPECT_EQ(EditedLine("-t 5", {{0, Quantity::kNodes, 2}}), "patch.no_place");
  EXPECT_EQ(EditedLine("-t 5", {{7, Quantity::kMemory, 2}}), "patch.part");
}

TEST(SbatchPlan, OwnValuesNeedNoEdit) {
  for (const char* options : {"--mem=128G -t 90:30 -c 3 -n 2 --gres=gpu:2", "-t UNLIMITED",
                              "--mem=1025K --gpus=3 -N 2-4", "--mem-per-cpu=1000"}) {
    const std::string text = "#!/bin/sh\n#SBATCH " + std::string(options) + "\nhostname\n";
    const Request now = ParseSbatch(text)->parts[0].request;
    std::vector<Wanted> wanted;
    if (now.cpu_cores) wanted.push_back(Cpus(*now.cpu_cores));
    if (now.gpu_count) wanted.push_back(Gpus(*now.gpu_count));
    if (now.memory_bytes) wanted.push_back(Memory(static_cast<double>(*now.memory_bytes) / kGiB));
    if (now.walltime_s) wanted.push_back(Walltime(static_cast<double>(*now.walltime_s)));
    EXPECT_EQ(Edited(text, wanted), text);
  }
}

}  // namespace
}  // namespace expanse::workload
