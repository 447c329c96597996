#include "workload/source/command_files.h"

#include <gtest/gtest.h>

#include "workload/source/shell_commands.h"

namespace expanse::workload::source {
namespace {

std::string Files(std::string_view script) {
  std::string all;
  for (const std::string& file : FilesOfCommands(ReadShellScript(script).commands))
    all += (all.empty() ? "" : " ") + file;
  return all;
}

TEST(CommandFiles, FindsScriptsAndTheirInputs) {
  EXPECT_EQ(Files("srun python train.py --config=conf/a.yaml --lr 0.1 data.csv"),
            "train.py conf/a.yaml data.csv");
  EXPECT_EQ(Files("mpirun -np 4 ./bin/solve mesh.in out"), "./bin/solve mesh.in");
  EXPECT_EQ(Files("python -m pkg.main x.json\npython -c 'import a'"), "x.json");
  EXPECT_EQ(Files("bash steps/one\nRscript fit.R\nbash steps/one"), "steps/one fit.R");
  EXPECT_EQ(Files("python $SCRIPT\npython run_$N.py\ncurl https://x.org/a.json"), "");
  EXPECT_EQ(Files("/usr/bin/time -v /opt/app/run input.txt"), "input.txt");
  EXPECT_EQ(Files("./run a=b.yaml *.csv .hidden -x"), "./run b.yaml");
}

TEST(CommandFiles, IsBounded) {
  std::string script;
  for (int i = 0; i < 400; ++i) script += "python s" + std::to_string(i) + ".py\n";
  std::vector<Command> commands = ReadShellScript(script).commands;
  EXPECT_EQ(FilesOfCommands(commands).size(), kMaxCommandFiles);
}

}  // namespace
}  // namespace expanse::workload::source
