#include "workload/source/shell_commands.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace expanse::workload::source {
namespace {

// One line a command: launchers in brackets, words between bars where they have blanks, unresolved
// ones with a "?" behind.
std::string Show(const std::vector<Command>& commands) {
  std::string shown;
  for (const Command& command : commands) {
    for (const std::string& launcher : command.launcher) shown += "[" + launcher + "] ";
    for (const Word& word : command.words) {
      const bool bars = word.text.empty() || word.text.find_first_of(" \n") != std::string::npos;
      shown += bars ? "|" + word.text + "|" : word.text;
      shown += word.resolved ? " " : "? ";
    }
    shown.back() = '\n';
  }
  return shown;
}

std::string Read(std::string_view script) { return Show(ReadShellScript(script).commands); }

TEST(ShellCommands, WordsAndQuotes) {
  EXPECT_EQ(Read("run 'a b' \"c $ d\" e\\ f g\"h\"'i' \"\" $'j\\nk' # comment\n"),
            "run |a b| |c $ d| |e f| ghi || |j\nk|\n");
  EXPECT_EQ(Read("run a \\\n  b\\\nc\n#run d\nrun a#b\n"), "run a bc\nrun a#b\n");
  EXPECT_EQ(Read("a; b && c || d | e & f |& g\n"), "a\nb\nc\nd\ne\nf\ng\n");
  EXPECT_EQ(Read("run a\r\nrun b \\\r\n c\r\n"), "run a\nrun b c\n");
}

TEST(ShellCommands, WhatAShellWouldHaveToDoIsUnresolved) {
  EXPECT_EQ(
      Read("run $(nproc) `hostname` $((2 * 3)) *.txt file{1,2} ${x%.c} $UNSET $1 <(sort x)\n"),
      "run $(nproc)? `hostname`? |$((2 * 3))|? *.txt? file{1,2}? ${x%.c}? $UNSET? $1? "
      "|<(sort x)|?\n");
  EXPECT_EQ(Read("run --model {{ model.name }} '*.txt' a{b}\n"),
            "run --model |{{ model.name }}|? *.txt a{b}\n");
}

TEST(ShellCommands, LiteralVariables) {
  EXPECT_EQ(Read("MODEL=org/Name-7B\nrun --model $MODEL \"${MODEL}-x\" '$MODEL'\n"),
            "run --model org/Name-7B org/Name-7B-x $MODEL\n");
  EXPECT_EQ(Read("ARGS='--lr 1e-4  --bs 8'\nrun $ARGS \"$ARGS\"\n"),
            "run --lr 1e-4 --bs 8 |--lr 1e-4  --bs 8|\n");
  EXPECT_EQ(Read("A=(--x 'y z')\nA+=(w)\nrun \"${A[@]}\"\n"), "run --x |y z| w\n");
  EXPECT_EQ(Read("A=1\nA+=2\nB=$A$A\nrun $B\n"), "run 1212\n");
  EXPECT_EQ(Read("A=$(date)\nrun $A\nA=2\nrun $A\n"), "run $A?\nrun 2\n");
  EXPECT_EQ(Read("CMD='python train.py'\n$CMD --lr 1\n"), "python train.py --lr 1\n");
}

TEST(ShellCommands, DefaultsAreTakenWhereNothingElseGivesTheValue) {
  EXPECT_EQ(Read("run ${1:-small} ${N:-4} \"${M:-a b}\" ${SLURM_NTASKS:-1} ${A:+x}\n"),
            "run small 4 |a b| ${SLURM_NTASKS:-1}? ${A:+x}?\n");
  EXPECT_EQ(Read("N=8\nrun ${N:-4} ${N}\nM=\nrun x${M:-2}\n"), "run 8 8\nrun x2\n");
  EXPECT_EQ(Read("run ${A:-${B:-c}}\n"), "run c\n");
}

TEST(ShellCommands, BranchesAndLoopsMakeTheirVariablesUnknown) {
  EXPECT_EQ(Read("N=1\nif [ -f x ]; then\n  N=2\n  run $N\nelse\n  run $N\nfi\nrun $N\n"),
            "run 2\nrun 1\nrun $N?\n");
  EXPECT_EQ(Read("N=1\nif a; then M=2; fi\nrun $N\n"), "a\nrun 1\n");
  EXPECT_EQ(Read("for lr in 1 2; do run $lr; done\nrun $lr\n"), "run $lr?\nrun $lr?\n");
  EXPECT_EQ(Read("i=0\nwhile [ $i -lt 3 ]; do run $i; i=$((i + 1)); done\n"), "run $i?\n");
  EXPECT_EQ(Read("for ((i = 0; i < 3; i++)); do run a; done\n"), "run a\n");
  EXPECT_EQ(Read("N=1\n(N=2; run $N)\nrun $N\n{ N=3; }\nrun $N\n"), "run 2\nrun 1\nrun 3\n");
  EXPECT_EQ(
      Read("N=1\n[ -z \"$X\" ] && N=2\nrun $N\nM=1\nfalse || M=2\nrun $M\ncd x && M=3\nrun $M\n"),
      "run $N?\nrun $M?\nrun 3\n");
  EXPECT_EQ(
      Read("case $1 in\n  a|b) run 1;;\n  (c) X=2; run $X ;;\n  *)\n    run 3\nesac\nrun $X\n"),
      "run 1\nrun 2\nrun 3\nrun $X?\n");
  EXPECT_EQ(Read("if [[ $a == b && -f c ]]; then run d; fi\nif (( N > 2 )); then run e; fi\n"),
            "run d\nrun e\n");
}

TEST(ShellCommands, FunctionsAreReadWhereTheyAreCalled) {
  EXPECT_EQ(
      Read("train() {\n  if a; then b; fi\n  run --model \"$1\" \"${@}\"\n}\nunused() { run x; }\n"
           "train big 2\nfunction g { run g; }\nfunction h() { run h$#; }\ng\nh a b\n"),
      "a\nb\nrun --model big big 2\nrun g\nrun h2\n");
  EXPECT_EQ(Read("f() { f; run 1; }\nf\n").substr(0, 12), "run 1\nrun 1\n") << "without end";
  EXPECT_EQ(Read("f() { local m=$1; shift; run $m \"$@\" $# ${00}; }\nf a b c\n"),
            "run a b c 2 ${00}?\n");
  EXPECT_EQ(Read("f() { while [ $1 ]; do shift; done; run $1; }\nf a b\n"), "run $1?\n");
  EXPECT_EQ(Read("time ( run a; run b )\n"), "run a\nrun b\n");
}

TEST(ShellCommands, DocumentsAreTheInputOfTheirCommand) {
  const ShellScript script = ReadShellScript(
      "cat > train.py <<'EOF'\nimport torch\nEOF\npython - <<-END | tee log\n\tprint(1)\n\tEND\n"
      "bc <<< '1 + 2'\nbash <<S\nrun inner\nS\nrun last 2>&1 > out.txt\n");
  ASSERT_EQ(script.commands.size(), 7U);
  EXPECT_EQ(Show(script.commands), "cat\npython -\ntee log\nbc\nbash\nrun inner\nrun last\n");
  EXPECT_EQ(script.commands[0].input, "import torch\n");
  EXPECT_EQ(script.commands[0].output, "train.py");
  EXPECT_EQ(script.commands[1].input, "\tprint(1)\n");
  EXPECT_EQ(script.commands[2].input, "");
  EXPECT_EQ(script.commands[3].input, "1 + 2");
  EXPECT_EQ(script.commands[6].output, "out.txt");
}

TEST(ShellCommands, LaunchersAreTakenOff) {
  EXPECT_EQ(Read("srun -n 4 --mpi=pmix --cpu-bind cores ./solver -i in\n"),
            "[srun -n 4 --mpi=pmix --cpu-bind cores] ./solver -i in\n");
  EXPECT_EQ(Read("time mpirun -np 8 --mca btl self,vader -x OMP_NUM_THREADS gmx_mpi mdrun -s a\n"),
            "[time] [mpirun -np 8 --mca btl self,vader -x OMP_NUM_THREADS] gmx_mpi mdrun -s a\n");
  EXPECT_EQ(Read("srun torchrun --nnodes 2 --nproc_per_node=8 train.py --lr 1\n"),
            "[srun] [torchrun --nnodes 2 --nproc_per_node=8] python train.py --lr 1\n");
  EXPECT_EQ(Read("torchrun --nproc-per-node 4 -m pkg.train --x\n"),
            "[torchrun --nproc-per-node 4] python -m pkg.train --x\n");
  EXPECT_EQ(Read("accelerate launch --config_file a.yaml --num-processes 8 run.py\n"),
            "[accelerate launch --config_file a.yaml --num-processes 8] python run.py\n");
  EXPECT_EQ(Read("python -u -m torch.distributed.launch --nproc_per_node=2 t.py\n"),
            "[python -u -m torch.distributed.launch --nproc_per_node=2] python t.py\n");
  EXPECT_EQ(Read("deepspeed --num_gpus 4 ft.py --deepspeed ds.json\n"),
            "[deepspeed --num_gpus 4] python ft.py --deepspeed ds.json\n");
  EXPECT_EQ(Read("singularity exec --nv -B /data:/data my.sif python3 a.py\n"),
            "[singularity exec --nv -B /data:/data my.sif] python3 a.py\n");
  EXPECT_EQ(Read("apptainer run my.sif\n"), "apptainer run my.sif\n");
  EXPECT_EQ(Read("env -u X A=1 nice -n 10 timeout 2h conda run -n e python a.py\n"),
            "[env -u X A=1] [nice -n 10] [timeout 2h] [conda run -n e] python a.py\n");
  EXPECT_EQ(Read("/usr/bin/time -v ./a\nsrun --version\n"),
            "[/usr/bin/time -v] ./a\nsrun --version\n");
}

TEST(ShellCommands, ScriptsInArguments) {
  EXPECT_EQ(Read("M=7b\nsrun bash -lc \"cd x; torchrun --nproc_per_node=2 t.py --m $M\"\n"),
            "[srun] [torchrun --nproc_per_node=2] python t.py --m 7b\n");
  EXPECT_EQ(Read("export M=7b\nN=1\nbash -c 'run $M $N'\nsh -c 'run $1' x y\nbash a.sh -c\n"),
            "run 7b $N?\nrun y\nbash a.sh -c\n");
  EXPECT_EQ(Read("eval \"run a\"\nexec run b\nexec > log\n"), "run a\n[exec] run b\n");
}

TEST(ShellCommands, Environment) {
  const ShellScript script = ReadShellScript(
      "A=1\nexport A B=2 C=$(x)\nexport D=4\nD=5\nOMP_NUM_THREADS=8 run\nsetenv E 6\nF=7\n");
  EXPECT_EQ(script.environment,
            (std::map<std::string, std::string>{
                {"A", "1"}, {"B", "2"}, {"D", "5"}, {"E", "6"}, {"OMP_NUM_THREADS", "8"}}));
}

TEST(ShellCommands, PlacesAreThoseOfTheText) {
  const std::string text = "name: x\nscript: |\n  A=1\n  run  $A   # c\n";
  const ShellScript script = ReadShellScript(text, {.begin = text.find("A=")});
  ASSERT_EQ(script.commands.size(), 1U);
  const Place place = script.commands[0].place;
  EXPECT_EQ(text.substr(place.begin, place.end - place.begin), "run  $A");
  EXPECT_EQ(place, PlaceOf(text, place.begin, place.end));
}

TEST(ShellCommands, ArgumentVectors) {
  const Place place{.begin = 1, .end = 2, .line = 3, .column = 4};
  const auto commands = CommandsOfArguments(
      {{.text = "/bin/sh"}, {.text = "-ec"}, {.text = "pip install x\npython $M"}}, place,
      {{"M", "a.py"}});
  EXPECT_EQ(Show(commands), "pip install x\npython a.py\n");
  EXPECT_EQ(commands[0].place, place);
  EXPECT_EQ(Show(CommandsOfArguments({{.text = "torchrun"}, {.text = "t.py"}}, place)),
            "[torchrun] python t.py\n");
  EXPECT_TRUE(CommandsOfArguments({}, place).empty());
}

TEST(ShellCommands, BrokenScripts) {
  for (const std::string_view script :
       {"run 'a",       "run \"a $b", "run ${", "run $(",    "run `",     "fi; done; esac; }; )",
        "if run; then", "f() {",      "case",   "case x in", "a=(",       "<<",
        "run <<E\n",    "cat <<",     "[[",     "((",        "for",       "{{",
        "\\",           "$'",         "run >",  "function",  "for x in a"}) {
    ReadShellScript(script);
  }
  EXPECT_EQ(Read("fi\nrun a\n)\n}\nrun b\n"), "run a\nrun b\n");
}

// Work is bounded: neither expansions nor functions nor nesting may blow up.
TEST(ShellCommands, HostileScripts) {
  std::string doubling = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 60; ++i) doubling += "A=\"$A$A\"\n";
  EXPECT_EQ(Read(doubling + "run $A\n"), "run $A?\n");
  std::string calls = "f0() { run x; }\n";
  for (int i = 1; i < 40; ++i) {
    const std::string previous = "f" + std::to_string(i - 1);
    calls += "f" + std::to_string(i) + "() { " + previous + "; " + previous + "; }\n";
  }
  ReadShellScript(calls + "f39\n");
  std::string repeated = "f() { run '" + std::string(100'000, 'x') + "'; bash <<E\nrun " +
                         std::string(100'000, 'y') + "\nE\n}\n";
  for (int i = 0; i < 50'000; ++i) repeated += "f\n";
  EXPECT_LE(ReadShellScript(repeated).commands.size(), 200U);
  for (const std::string_view piece :
       {"{ ",        "( ",  "((",  "if ",       "f() { ", "case x in ", "$(",       "${a:-",
        "\"",        "'",   "`",   "<<E\n",     "{{",     "A+=x\n",     "A=$A$A\n", "{ A+=x; }\n",
        "sh -c '' ", "a=(", "fi ", "for x in ", "[[ ",    "\\",         "{,}"}) {
    std::string text;
    while (text.size() < 300'000) text += piece;
    ReadShellScript(text);
  }
}

}  // namespace
}  // namespace expanse::workload::source
