#include "workload/sbatch/sbatch.h"

#include <gtest/gtest.h>

namespace expanse::workload {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

Submission MustParse(std::string_view text) {
  auto parsed = ParseSbatch(text);
  if (!parsed) {
    ADD_FAILURE() << parsed.error().reason << ": " << parsed.error().message;
    Submission none;
    none.parts.emplace_back();
    return none;
  }
  return *std::move(parsed);
}

std::string Script(std::string_view directives) {
  return "#!/bin/bash\n" + std::string(directives) + "srun ./run\n";
}

// "nodes/tasks/cpus/gpus/memory in MiB" of the first part; "-" for what is absent.
std::string Totals(std::string_view options) {
  const Submission script = MustParse(Script("#SBATCH " + std::string(options) + "\n"));
  if (script.parts.empty()) return "";
  const Request& request = script.parts[0].request;
  const auto show = [](const auto& value, double unit = 1) {
    return value ? std::to_string(static_cast<long>(static_cast<double>(*value) / unit))
                 : std::string("-");
  };
  return show(request.nodes) + "/" + show(request.tasks) + "/" + show(request.cpu_cores) + "/" +
         show(request.gpu_count) + "/" + show(request.memory_bytes, 1024 * 1024);
}

TEST(Sbatch, KnowsTheDirectoryThatItRunsIn) {
  for (const char* spelling : {"--chdir='/data/x y'", "-D '/data/x y'", "--chd \"/data/x y\""}) {
    const Submission script = MustParse(Script(std::string("#SBATCH -D other\n#SBATCH ") +
                                               spelling + "\n#SBATCH hetjob\n#SBATCH -D z\n"));
    EXPECT_EQ(script.directory, "/data/x y") << spelling;
  }
  EXPECT_EQ(MustParse(Script("#SBATCH --mem=1G\n")).directory, "");
}

TEST(Sbatch, ReadsDirectivesWithTheirPlaces) {
  const std::string text =
      "#!/bin/bash\n"
      "#SBATCH --job-name=train\n"
      "#SBATCH --mem 16G -t \"1-00:00:00\"\n"
      "#SBATCH -c8 # cores\n"
      "srun ./train\n";
  const Submission script = MustParse(text);
  EXPECT_EQ(script.name, "train");
  ASSERT_EQ(script.parts.size(), 1U);
  const Part& part = script.parts[0];
  EXPECT_EQ(part.request.memory_bytes, 16 * kGiB);
  EXPECT_EQ(part.request.walltime_s, 86400);
  EXPECT_EQ(part.request.cpu_cores, 8);
  ASSERT_EQ(part.settings.size(), 3U);
  EXPECT_EQ(part.settings[0].name, "--mem");
  EXPECT_EQ(part.settings[0].written, "16G");
  EXPECT_EQ(part.settings[0].place, PlaceOf(text, text.find("16G"), text.find("16G") + 3));
  EXPECT_EQ(part.settings[1].written, "1-00:00:00");
  EXPECT_EQ(part.settings[1].place.line, 3U);
  EXPECT_EQ(part.settings[2].written, "8");
  EXPECT_EQ(part.settings[2].place.column, 11U);
}

TEST(Sbatch, TheLastOfAnOptionCountsAndNothingAfterACommand) {
  const Submission script = MustParse(
      "#!/bin/sh\n#SBATCH -t 5 --time=6\n\n# a comment\n#SBATCH -t 7\nhostname\n"
      "#SBATCH -t 9\n");
  EXPECT_EQ(script.parts[0].request.walltime_s, 420);
  ASSERT_EQ(script.parts[0].settings.size(), 3U);
  EXPECT_FALSE(script.parts[0].settings[0].effective);
  EXPECT_FALSE(script.parts[0].settings[1].effective);
  EXPECT_TRUE(script.parts[0].settings[2].effective);
  ASSERT_EQ(script.notes.size(), 1U);
  EXPECT_EQ(script.notes[0].reason, "ignored_after_command");
  EXPECT_EQ(script.notes[0].line, 7U);
}

// Each line was seen on Slurm 22.05.8.
TEST(Sbatch, AddsUpAsSlurmDoes) {
  EXPECT_EQ(Totals("--job-name=x"), "1/1/1/-/-");
  EXPECT_EQ(Totals("-N 2 --ntasks-per-node=3"), "2/6/6/-/-");
  EXPECT_EQ(Totals("--ntasks-per-node=3"), "1/3/3/-/-");
  EXPECT_EQ(Totals("-N 2-4 --ntasks-per-node=2 --mem=10"), "2/4/4/-/20");
  EXPECT_EQ(Totals("-N 3 -n 2"), "2/2/2/-/-");
  EXPECT_EQ(Totals("-N 2 -c 4"), "2/2/8/-/-");
  EXPECT_EQ(Totals("-N 2 --sockets-per-node=1 --cores-per-socket=4"), "2/8/8/-/-");
  EXPECT_EQ(Totals("-B 1:2"), "1/2/2/-/-");
  EXPECT_EQ(Totals("-B *:3:*"), "1/3/3/-/-");
  EXPECT_EQ(Totals("-n 8 -O -N 2"), "2/8/2/-/-");
  EXPECT_EQ(Totals("--gpus-per-task=1 -n 3"), "1/3/3/3/-");
  EXPECT_EQ(Totals("--gpus=4 --gpus-per-task=2"), "1/2/2/4/-");
  EXPECT_EQ(Totals("--gpus=4 --gpus-per-node=2"), "2/2/2/4/-");
  EXPECT_EQ(Totals("--gres=gpu:a100:2 -N 2"), "2/2/2/4/-");
  EXPECT_EQ(Totals("--ntasks-per-gpu=2 --gpus-per-node=1 -N2"), "2/4/4/2/-");
  EXPECT_EQ(Totals("--ntasks-per-gpu=1 -n 3"), "1/3/3/3/-");
  EXPECT_EQ(Totals("--gpus-per-socket=1 --sockets-per-node=1 -N2"), "2/2/2/2/-");
  EXPECT_EQ(Totals("-N 3 --ntasks-per-gpu=2"), "3/6/6/3/-");
  EXPECT_EQ(Totals("-n 4 --ntasks-per-gpu=8"), "1/4/4/0/-");
  EXPECT_EQ(Totals("-n 4 --ntasks-per-gpu=2 --gpus=1"), "1/2/4/1/-");
  EXPECT_EQ(Totals("-n 4 -N 2 --ntasks-per-gpu=2 --gpus-per-node=2"), "2/8/8/4/-");
  EXPECT_EQ(Totals("--gpus-per-node=2,1"), "1/1/1/2/-");
  EXPECT_EQ(Totals("--gres=gpu:1,gpu:1,gpu:a:3"), "1/1/1/4/-");
  EXPECT_EQ(Totals("--gpus-per-task=0 --gpus-per-node=2"), "1/1/1/2/-");
  EXPECT_EQ(Totals("--gpus= --gpus-per-node="), "1/1/1/-/-");
  EXPECT_EQ(Totals("--gres=gpu::1 --gres=gpu:0"), "1/1/1/0/-");
  EXPECT_EQ(Totals("--cpus-per-gpu=3 --gres=gpu:1 -N 2"), "2/2/6/2/-");
  EXPECT_EQ(Totals("--mem-per-gpu=100 --gpus=2"), "1/1/1/2/200");
  EXPECT_EQ(Totals("--mem-per-cpu=100 -c 3 -n 2"), "1/2/6/-/600");
  EXPECT_EQ(Totals("--mem=50 -n 3 -N 2"), "2/3/3/-/100");
  EXPECT_EQ(Totals("--mem=0 -N 2"), "2/2/2/-/0");
}

TEST(Sbatch, RefusesWhatSbatchRefuses) {
  const auto reason = [](std::string_view text) {
    const auto parsed = ParseSbatch(text);
    return parsed ? std::string("parsed") : parsed.error().reason;
  };
  EXPECT_EQ(reason(""), "empty");
  EXPECT_EQ(reason("\n#!/bin/sh\n"), "no_shebang");
  EXPECT_EQ(reason(std::string("#!/bin/sh\n\0", 11)), "null_character");
  EXPECT_EQ(reason(Script("#SBATCH -t \"7 -n 3\n")), "unmatched_quote");
  EXPECT_EQ(reason(Script("#SBATCH -n 3 : -n 4\n")), "unexpected_colon");
  EXPECT_EQ(reason(Script("#SBATCH foo\n")), "invalid_directive");
  EXPECT_EQ(reason(Script("#SBATCHx -n 2\n")), "invalid_directive");
  EXPECT_EQ(reason(Script("#SBATCH --mem = 7\n")), "invalid_directive");
  EXPECT_EQ(reason(Script("#SBATCH --mem=4GiB\n")), "invalid_value");
  EXPECT_EQ(reason(Script("#SBATCH -t=7\n")), "invalid_value");
  EXPECT_EQ(reason(Script("#SBATCH --nt 3\n")), "ambiguous_option");
  EXPECT_EQ(reason(Script("#SBATCH --time\n")), "missing_value");
  EXPECT_EQ(reason(Script("#SBATCH --hold=1\n")), "unexpected_value");
  EXPECT_EQ(reason(Script("#SBATCH --gpus-per-task=1 --ntasks-per-gpu=1\n")), "exclusive_options");
  EXPECT_EQ(reason(Script("#SBATCH --mem=1 --mem-per-cpu=1\n")), "exclusive_options");
}

TEST(Sbatch, ComponentsOfAHetJobKeepSomeOptions) {
  const Submission script = MustParse(
      Script("#SBATCH -n 3 -t 7 --mem=99 -c 2 -J foo\n#SBATCH packjob\n#SBATCH --gpus=1\n"));
  ASSERT_EQ(script.parts.size(), 2U);
  EXPECT_EQ(script.parts[0].request.cpu_cores, 6);
  const Request& second = script.parts[1].request;
  EXPECT_EQ(second.cpu_cores, 1);
  EXPECT_EQ(second.gpu_count, 1);
  EXPECT_EQ(second.memory_bytes, 99U << 20);
  EXPECT_EQ(second.walltime_s, 420);
  EXPECT_EQ(script.parts[1].workload, "foo");
}

TEST(Sbatch, ComponentsBeginWithALine) {
  const auto parts = [](std::string_view lines) {
    std::string all;
    for (const Part& part : MustParse(Script(lines)).parts)
      all += std::to_string(part.request.tasks.value_or(0)) + " ";
    return all;
  };
  EXPECT_EQ(parts("#SBATCH -n 2\n#SBATCH hetjob -n 5\n"), "2 1 ");
  EXPECT_EQ(parts("#SBATCH -n 2 hetjob -n 5\n#SBATCH  hetjob # x\n#SBATCH -n 3\n"), "2 3 ");
  EXPECT_EQ(parts("#SBATCHhetjob\n#SBATCH -n 3\n#SBATCH --comment=hetjob\n"), "1 3 ");
}

TEST(Sbatch, ReadsTheCommandsBehindTheDirectives) {
  const std::string text =
      "#!/usr/bin/env -S bash -l\n"
      "#SBATCH -n 4 -c 2 --export=ALL,MODE=fast --comment=team=tides;run=7 --input=in.txt\n"
      "module load gcc/12 cuda\n"
      "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n"
      "srun -n $SLURM_NTASKS python train.py --mode $MODE --id $SLURM_JOB_ID\n"
      "cat > inner.sh <<EOF\n#SBATCH -n 9\npython other.py\nEOF\n";
  const Submission script = MustParse(text);
  const Part& part = script.parts[0];
  ASSERT_GE(part.commands.size(), 2U);
  const Command& train = part.commands[1];
  EXPECT_EQ(train.place.line, 5U);
  EXPECT_EQ(train.launcher, std::vector<std::string>{"srun -n 4"});
  ASSERT_EQ(train.words.size(), 6U);
  EXPECT_EQ(train.words[3].text, "fast");
  EXPECT_FALSE(train.words[5].resolved);
  EXPECT_EQ(part.environment.at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(part.environment.at("MODE"), "fast");
  EXPECT_EQ(part.annotations.at("modules"), "gcc/12 cuda");
  EXPECT_EQ(part.annotations.at("team"), "tides");
  EXPECT_EQ(part.annotations.at("run"), "7");
  EXPECT_EQ(script.files, (std::vector<std::string>{"in.txt", "train.py"}));
}

TEST(Sbatch, KnowsWhichModulesAreLoaded) {
  const Submission script = MustParse(
      "#!/bin/bash -l\nmodule purge\nml purge\nml gcc/12 -cuda\nml load fftw\nmodule add r/4\n"
      "module unload gcc\nml list\n");
  EXPECT_EQ(script.parts[0].annotations.at("modules"), "gcc/12 fftw r/4");
}

TEST(Sbatch, OtherLanguagesHaveNoCommands) {
  const Submission script = MustParse("#!/usr/bin/env python3\n#SBATCH -n 2\nimport os\n");
  EXPECT_EQ(script.parts[0].request.tasks, 2U);
  EXPECT_TRUE(script.parts[0].commands.empty());
}

// Neither words, notes nor what components share may grow into more than the text is worth.
TEST(Sbatch, WhatItKeepsIsBounded) {
  std::string shared = "#!/bin/sh\n";
  for (int i = 0; i < 255; ++i) shared += "#SBATCH hetjob\n";
  for (int i = 0; i < 4000; ++i) shared += "#PBS -l nodes=2\n";
  const Submission script = MustParse(shared);
  ASSERT_EQ(script.parts.size(), 256U);
  EXPECT_EQ(script.parts[0].settings.size(), 4000U);
  EXPECT_EQ(script.parts[255].settings.size(), 1U);
  EXPECT_EQ(ParseSbatch(shared + "#SBATCH hetjob\n").error().reason, "too_many_components");
  std::string words = "#!/bin/sh\n";
  for (int i = 0; i < 6000; ++i) words += "#SBATCH -n 2\n";
  EXPECT_EQ(ParseSbatch(words).error().reason, "too_large");
  std::string late = "#!/bin/sh\nhostname\n";
  for (int i = 0; i < 6000; ++i) late += "#SBATCH -n 2\n";
  EXPECT_EQ(MustParse(late).notes.size(), 1000U);
}

TEST(Sbatch, WhatATemplateFillsInIsUnresolved) {
  const Submission script =
      MustParse(Script("#SBATCH --mem={{ mem }} -t $HOURS:00:00 -c <cores>\n#SBATCH -n 2\n"));
  const Request& request = script.parts[0].request;
  EXPECT_EQ(request.memory_bytes, std::nullopt);
  EXPECT_EQ(request.walltime_s, std::nullopt);
  EXPECT_EQ(request.cpu_cores, std::nullopt);
  EXPECT_EQ(request.tasks, 2U);
  ASSERT_EQ(script.parts.at(0).settings.size(), 4U);
  EXPECT_EQ(script.parts[0].settings[0].written, "{{ mem }}");
  EXPECT_EQ(script.parts[0].settings[0].unresolved, "template");
  EXPECT_EQ(script.parts[0].settings[1].unresolved, "variable HOURS");
}

// "nodes/tasks/cpus/memory in MiB/minutes" with these lines; each was seen on Slurm 22.05.8.
std::string Foreign(std::string_view lines) {
  const Request request = MustParse(Script(lines)).parts[0].request;
  return std::to_string(request.nodes.value_or(0)) + "/" +
         std::to_string(request.tasks.value_or(0)) + "/" +
         std::to_string(static_cast<int>(request.cpu_cores.value_or(0))) + "/" +
         std::to_string(request.memory_bytes.value_or(0) >> 20) + "/" +
         std::to_string(request.walltime_s.value_or(0) / 60);
}

TEST(Sbatch, ObeysLinesOfOtherSchedulersAsSbatchDoes) {
  EXPECT_EQ(Foreign("#PBS -l walltime=33\n#SBATCH -t 3\n"), "1/1/1/0/33");
  EXPECT_EQ(Foreign("#SBATCH -t 3 --ignore-pbs\n#PBS -l walltime=33\n"), "1/1/1/0/3");
  EXPECT_EQ(Foreign("#SBATCH -n 2\n#PBS -l nodes=2:ppn=4\n"), "2/8/8/0/0");
  EXPECT_EQ(Foreign("#PBS -lwalltime=1:00:00,nodes=1:ppn=2 -l mem=4GB\n"), "1/2/2/4096/60");
  EXPECT_EQ(Foreign("#PBS -l select=2:ncpus=4:mpiprocs=2\n"), "2/4/8/0/0");
  EXPECT_EQ(Foreign("#PBS -l pmem=300 -z -j oe -m abe -V\n"), "1/1/1/0/0");
  EXPECT_EQ(Foreign("#BSUB -n 2,4 -W 20\n#PBS -l walltime=33\n"), "1/4/4/0/20");
  EXPECT_EQ(Foreign("#BSUB -n 2\n#PBS -l walltime=33,nodes=3\n"), "1/2/2/0/0");
  EXPECT_EQ(Foreign("#BSUB\n#PBS -l walltime=33\n"), "1/1/1/0/0");
  EXPECT_EQ(Foreign("#PBS -l walltime=33\nhostname\n#PBS -l walltime=44\n"), "1/1/1/0/44");
  EXPECT_EQ(Foreign("#SBATCH --ignore-pbs\n#PBS it's\n"), "1/1/1/0/0");
  EXPECT_EQ(ParseSbatch(Script("#PBS it's\n")).error().reason, "unmatched_quote");
  EXPECT_EQ(Foreign("#BSUB -M 3000000\n"), "1/1/1/2930/0");
  const Submission script = MustParse(Script("#PBS -N nm -l nodes=1:ppn=2:gpus=1\n"));
  EXPECT_EQ(script.name, "nm");
  EXPECT_EQ(script.parts[0].request.gpu_count, 1);
  ASSERT_EQ(script.notes.size(), 1U);
  EXPECT_EQ(script.notes[0].reason, "foreign_directive");
}

}  // namespace
}  // namespace expanse::workload
