#include "collect/sources/script_files.h"

#include <gtest/gtest.h>

namespace expanse::collect {
namespace {

using Files = std::vector<ScriptFile>;

Files Find(std::string_view script) { return FindScriptFiles(script, "/scratch/run"); }
ScriptFile Script(std::string path) { return {std::move(path), true}; }
ScriptFile Argument(std::string path) { return {std::move(path), false}; }

TEST(FindScriptFiles, ReadsTheCommandsOfAJobScript) {
  EXPECT_EQ(Find("#!/bin/bash\n"
                 "#SBATCH --output=logs/%j.out\n"
                 "#SBATCH --job-name=a.b\n"
                 "module load cuda/12.1\n"
                 "source venv/activate.sh  # not this.sh\n"
                 "srun -N 2 --mpi=pmix python -u train.py --config conf/a.yaml --lr=0.1 3.5\n"
                 "./post.sh < in.nml > out.log 2>&1\n"),
            (Files{Script("venv/activate.sh"), Script("train.py"), Argument("conf/a.yaml"),
                   Script("./post.sh"), Argument("in.nml")}));
}

TEST(FindScriptFiles, LeavesWhatOtherCommandsTake) {
  EXPECT_EQ(Find("cp data.csv /scratch/x.csv\necho done.txt\nmkdir -p out.d\n"
                 "export A=b.c\nrm -rf ./old.d\n"),
            Files{});
}

TEST(FindScriptFiles, JoinsContinuedLinesAndSplitsCommands) {
  EXPECT_EQ(Find("python \\\n  a.py \\\n  --data=d.json && bash b.sh; sh c.sh | python3 d.py &\n"
                 "if ! ./check.sh; then exec python e.py; fi\n"),
            (Files{Script("a.py"), Argument("d.json"), Script("b.sh"), Script("c.sh"),
                   Script("d.py"), Script("./check.sh"), Script("e.py")}));
}

TEST(FindScriptFiles, KnowsTheDirectoryAndNoOtherVariable) {
  EXPECT_EQ(Find("python $SLURM_SUBMIT_DIR/a.py ${PWD}/b.cfg $HOME/c.cfg \"$PWD/d e.txt\" "
                 "'$PWD/f.txt' $(ls x.y) ${UNSET:-g.h} *.yaml\n"),
            (Files{Script("/scratch/run/a.py"), Argument("/scratch/run/b.cfg"),
                   Argument("/scratch/run/d e.txt"), Argument("$PWD/f.txt")}));
}

TEST(FindScriptFiles, FollowsPlainChangesOfDirectory) {
  EXPECT_EQ(Find("cd sub\npython a.py\ncd deeper && ./b.sh\ncd /abs\npython c.py ../d.py\ncd -\n"
                 "python e.py\ncd $X\npython f.py"),
            (Files{Script("sub/a.py"), Script("sub/deeper/./b.sh"), Script("/abs/c.py"),
                   Script("/abs/../d.py"), Script("/abs/e.py"), Script("/abs/f.py")}));
}

TEST(FindScriptFiles, LooksThroughLaunchersAndWrappers) {
  EXPECT_EQ(Find("OMP_NUM_THREADS=4 time mpirun -np 4 ./solver.x case.in\n"
                 "torchrun --nproc_per_node=8 main.py --cfg=x.toml\n"
                 "apptainer exec --nv py.sif python in.py\n"
                 "python -m pkg.train --opt o.json\npython -c 'import a.b'\n"),
            (Files{Script("./solver.x"), Argument("case.in"), Script("main.py"), Argument("x.toml"),
                   Script("py.sif"), Script("in.py"), Argument("o.json")}));
}

TEST(FindScriptFiles, IsBoundedAndEndsOnAnyBytes) {
  std::string many;
  for (int i = 0; i < 500; ++i) many += "python f" + std::to_string(i) + ".py\n";
  EXPECT_EQ(Find(many).size(), kMaxScriptFiles);
  for (std::string_view odd : {"python \"a", "python 'a\n", "\\", "\v\f", "$", "${", "<", "><>",
                               "python $", "python ${A", "python a.py\\", "`python a.py`"}) {
    EXPECT_LE(Find(odd).size(), 1U) << odd;
  }
  EXPECT_EQ(Find("python " + std::string(5000, 'a') + ".py"), Files{});
  EXPECT_EQ(Find(std::string_view("cd a\0b\npython c.py", 18)), (Files{Script("c.py")}));
  EXPECT_EQ(Find("python /usr/lib/x.py /dev/null ~/x.py . .. ./\n"), Files{});
}

}  // namespace
}  // namespace expanse::collect
