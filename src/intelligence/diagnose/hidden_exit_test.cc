#include "intelligence/diagnose/hidden_exit.h"

#include <gtest/gtest.h>

namespace expanse::intelligence::diagnose {
namespace {

// "or_true 3: ./solver || true", or "none".
std::string Found(std::string_view body, std::string_view first = "#!/bin/bash\n") {
  const auto hidden = FindHiddenExit(std::string(first) + std::string(body));
  if (!hidden) return "none";
  return std::string(Name(hidden->how)) + " " + std::to_string(hidden->line) + ": " + hidden->text;
}

TEST(HiddenExit, FindsACommandThatMayFail) {
  EXPECT_EQ(Found("#SBATCH --mem=1G\nsrun ./solver || true\n"), "or_true 3: srun ./solver || true");
  EXPECT_EQ(Found("set -e\npython train.py --lr 1 || :\necho done"),
            "or_true 3: python train.py --lr 1 || :");
  EXPECT_EQ(Found("python a.py ||\n  echo failed\n./b\n"), "or_true 2: python a.py ||");
  EXPECT_EQ(Found("OMP_NUM_THREADS=4 ./a 2>&1 || exit 0\n./b"),
            "or_true 2: OMP_NUM_THREADS=4 ./a 2>&1 || exit 0");
  EXPECT_EQ(Found("for i in 1 2; do\n  ./a $i || true\ndone\n"), "or_true 3:   ./a $i || true");
}

TEST(HiddenExit, FindsAPipeThatKeepsTheStatusOfItsLastCommand) {
  EXPECT_EQ(Found("set -e\npython train.py 2>&1 | tee log.txt\n"),
            "pipe 3: python train.py 2>&1 | tee log.txt");
  EXPECT_EQ(Found("set -eo pipefail\npython train.py | tee log.txt\n"), "none");
  EXPECT_EQ(Found("set -e\nset -o pipefail\npython train.py | tee log.txt\n"), "none");
}

TEST(HiddenExit, FindsErrexitSwitchedOff) {
  EXPECT_EQ(Found("set -e\nmodule load a\nset +e\n./solver\nrc=$?\n./next\n"),
            "set_plus_e 4: set +e");
  EXPECT_EQ(Found("set -e\nset +e\nmodule load a\nset -e\n./solver\necho done\n"), "none");
}

TEST(HiddenExit, FindsALastCommandThatAlwaysEndsWell) {
  EXPECT_EQ(Found("./solver input\necho \"done at $(date)\"\n"),
            "last_command 3: echo \"done at $(date)\"");
  EXPECT_EQ(Found("./solver input\nexit 0"), "last_command 3: exit 0");
  EXPECT_EQ(Found("./solver input; true"), "last_command 2: ./solver input; true");
  EXPECT_EQ(Found("./a &\n./b &\nwait\n"), "last_command 4: wait");
  EXPECT_EQ(Found("cat > in.txt <<EOF\nexit 0\nEOF\n./solver in.txt\ndate\n"),
            "last_command 6: date");
}

TEST(HiddenExit, FindsNothingWhereTheStatusTells) {
  EXPECT_EQ(Found("./solver input\n"), "none");
  EXPECT_EQ(Found("set -e\n./solver\necho done\n"), "none");
  EXPECT_EQ(Found("set -euo pipefail\n./solver\necho done\n"), "none");
  EXPECT_EQ(Found("./solver\necho done\n", "#!/bin/bash -e\n"), "none");
  EXPECT_EQ(Found("./solver && echo done\n"), "none");
  EXPECT_EQ(Found("./solver || exit 1\n"), "none");
  EXPECT_EQ(Found("./solver || { echo failed; exit 1; }\n"), "none");
  EXPECT_EQ(Found("./solver\nexit $?\n"), "none");
  EXPECT_EQ(Found("./a & pid=$!\nwait $pid\n"), "none");
  EXPECT_EQ(Found("echo '; true || true'\n./solver # || true\n"), "none");
}

TEST(HiddenExit, LeavesHousekeepingAlone) {
  EXPECT_EQ(Found("rm -rf /tmp/x || true\nmkdir out || true\nmodule load a || true\n./solver\n"),
            "none");
  EXPECT_EQ(Found("grep -c x log | head\n./solver\n"), "none");
  EXPECT_EQ(Found("if ./probe || true; then echo yes; fi\n./solver\n"), "none");
  EXPECT_EQ(Found("[[ -f a || -f b ]] || true\n./solver\n"), "none");
}

TEST(HiddenExit, SaysNothingWhereTheEndCannotBeTold) {
  EXPECT_EQ(Found("./solver\nif [ -f out ]; then echo done; fi\n"), "none");
  EXPECT_EQ(Found("main() {\n  ./solver\n  echo done\n}\nmain\n"), "none");
  EXPECT_EQ(Found("case $1 in\n  a) ./solver ;;\n  *) echo no ;;\nesac\n"), "none");
}

TEST(HiddenExit, ReadsOnlyShellScripts) {
  EXPECT_EQ(Found("main()\n|| true", "#!/usr/bin/env python3\n"), "none");
  EXPECT_EQ(Found("./a || true", ""), "none");
  EXPECT_EQ(Found("./a || true", "#!/usr/bin/env bash\n"), "or_true 2: ./a || true");
  EXPECT_EQ(Found("./a || true", "#!"), "none");
  EXPECT_EQ(FindHiddenExit(""), std::nullopt);
  EXPECT_EQ(FindHiddenExit("#!/bin/sh"), std::nullopt);
}

}  // namespace
}  // namespace expanse::intelligence::diagnose
