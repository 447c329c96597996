#include "intelligence/history/normalise.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "intelligence/history/fingerprint.h"

namespace expanse::intelligence::history {
namespace {

TEST(NormaliseShell, TakesOutWhatIsAskedOfTheScheduler) {
  const std::string script =
      "#!/bin/bash\r\n"
      "#SBATCH --job-name=train\r\n"
      "#SBATCH --mem=64G   # as last time\r\n"
      "#SBATCH --export=ALL,MODEL=7b\r\n"
      "\r\n"
      "# load what it needs\r\n"
      "module load cuda  # 12\r\n"
      "srun -n 4 --mem=10G --gres gpu:2 -p debug -c8 python train.py -n 4 --mem 3 > out.log "
      "2>&1\r\n"
      "echo \"# not a comment\" 'nor # this' a#b ${#x} $#\r\n";
  EXPECT_EQ(NormaliseSource("job.sh", script),
            "#!/bin/bash\n"
            "#SBATCH --export=ALL,MODEL=7b\n"
            "module load cuda\n"
            "srun -p debug python train.py -n 4 --mem 3 2>&1\n"
            "echo \"# not a comment\" 'nor # this' a#b ${#x} $#\n");
}

TEST(NormaliseShell, TakesOutNamesOfOutput) {
  EXPECT_EQ(NormaliseShell("a --output-dir r/1 --lr 3 --log_file=x.log in.txt\n"),
            "a --lr 3 in.txt\n");
  EXPECT_EQ(NormaliseShell("a --output --lr 3\n"), "a --lr 3\n");
  EXPECT_EQ(NormaliseShell("a >>o 2>e; b &>c | tee -a d.log e && f<in >|o\n"),
            "a; b | tee -a && f<in\n");
  EXPECT_EQ(NormaliseShell("a 2>&1 >&2 < in\n"), "a 2>&1 >&2 < in\n");
  EXPECT_EQ(NormaliseShell("if [[ $a > $b ]]; then (( c > d )); fi\n"),
            "if [[ $a > $b ]]; then (( c > d )); fi\n")
      << "comparisons";
}

TEST(NormaliseShell, JoinsContinuedLinesAndKeepsHereDocuments) {
  EXPECT_EQ(NormaliseShell("srun \\\n  -n 4 \\\n  ./a \\\n  b\n"), "srun ./a b\n");
  EXPECT_EQ(NormaliseShell("cat > x.cfg <<'EOF' # c\n# kept\n  a > b\nEOF\nb # gone\n"),
            "cat <<'EOF'\n# kept\n  a > b\nEOF\nb\n");
  EXPECT_EQ(NormaliseShell("cat <<-A <<B\n\t# 1\n\tA\n# 2\nB\nc #\n"),
            "cat <<-A <<B\n\t# 1\n\tA\n# 2\nB\nc\n");
  EXPECT_EQ(NormaliseShell("a <<< '# x' # y\nb\n"), "a <<< '# x'\nb\n");
  EXPECT_EQ(NormaliseShell("x='a\n# in a string\n' # out\n"), "x='a\n# in a string\n'\n");
  EXPECT_EQ(NormaliseShell("a <<E\nnever ends # 1\n"), "a <<E\nnever ends # 1\n");
}

TEST(NormalisePython, TakesOutCommentsOutsideStrings) {
  EXPECT_EQ(NormaliseSource("t.py",
                            "#!/usr/bin/env python3\n# c\nimport torch  # c\n\n"
                            "x = '# no' + \"a\\\"# no\"  # yes\n"
                            "s = '''\n# inside\n'''\n"
                            "y = 'open # yes?\nz = 1 # c\n"),
            "#!/usr/bin/env python3\nimport torch\n"
            "x = '# no' + \"a\\\"# no\"\n"
            "s = '''\n# inside\n'''\n"
            "y = 'open # yes?\nz = 1\n");
}

TEST(NormaliseSource, KnowsTheCommentsOfOtherLanguages) {
  EXPECT_EQ(
      NormaliseSource(
          "a.cu", "#include <x>\n// c\nint a; /* b\n c */ int b; // \"\nchar* s = \"// no\";\n"),
      "#include <x>\nint a;   int b;\nchar* s = \"// no\";\n");
  EXPECT_EQ(NormaliseSource("a.R", "x <- 1 # c\ny <- '#no'\n"), "x <- 1\ny <- '#no'\n");
  EXPECT_EQ(NormaliseSource("a.f90", "a = 1 ! c\nprint *, '!no'\n"), "a = 1\nprint *, '!no'\n");
  EXPECT_EQ(NormaliseSource("a.sql", "select 1 -- c\n"), "select 1\n");
  EXPECT_EQ(NormaliseSource("q.m", "a = 1 % c\n"), "a = 1\n");
  EXPECT_EQ(NormaliseSource("notes", "\xEF\xBB\xBF# kept \n\n\t\n// kept\n"), "# kept\n// kept\n");
  EXPECT_EQ(NormaliseSource("noending", "#!/usr/bin/python3 -u\na # c\n"),
            "#!/usr/bin/python3 -u\na\n");
  EXPECT_EQ(NormaliseSource("noending", "#SBATCH --mem=1G\na # c\n"), "a\n");
  EXPECT_EQ(NormaliseSource("", ""), "");
}

TEST(NormaliseSource, ABatchScriptMayBeOfAnotherLanguage) {
  const std::string script = "#!/usr/bin/env python3\n#SBATCH --mem=1G\nx = '''\n# y\n'''\n";
  const std::string normal = "#!/usr/bin/env python3\nx = '''\n# y\n'''\n";
  EXPECT_EQ(NormaliseSource("fit.slurm", script), normal);
  EXPECT_EQ(NormaliseSource("batch_script", script), normal);
}

TEST(NormaliseSource, TakesResourcesOutOfManifests) {
  const auto manifest = [](const char* resources) {
    return std::string("apiVersion: batch/v1\nkind: Job\nspec:\n  # c\n") +
           (*resources ? "  activeDeadlineSeconds: 60\n" : "") +
           "  template:\n    spec:\n      containers:\n      - name: a # x\n        image: "
           "\"r/a#b\"\n" +
           resources + "        args: [\"--n\", \"5\"]\n";
  };
  const std::string bare = NormaliseSource("job.yaml", manifest(""));
  EXPECT_EQ(bare,
            "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n"
            "      - name: a\n        image: \"r/a#b\"\n        args: [\"--n\", \"5\"]\n");
  EXPECT_EQ(
      NormaliseSource("job.yml",
                      manifest("        resources:\n          limits:\n            memory: 4Gi\n\n"
                               "          requests: {cpu: 1}\n")),
      bare);
  EXPECT_EQ(NormaliseSource("job.yml",
                            manifest("        resources: {limits: {cpu: 1,\n  memory: 1Gi}}\n")),
            bare);
  EXPECT_EQ(NormaliseSource("j.yaml",
                            "apiVersion: v1\nx:\n- resources:\n    limits: 1\n  name: a\n- "
                            "resources: {}\n  name: b\n"),
            "apiVersion: v1\nx:\n-\n  name: a\n-\n  name: b\n");
  EXPECT_EQ(NormaliseSource("config.yaml", "resources:\n  a: 1\n"), "resources:\n  a: 1\n")
      << "no manifest";
}

TEST(NormaliseSource, TakesResourcesOutOfJobspecs) {
  EXPECT_EQ(NormaliseSource(
                "a.nomad.hcl",
                "task \"a\" { // c\n  config { image = \"x{//y\" }\n  resources {\n    cpu = 5\n"
                "    device \"gpu\" { count = 1 }\n  }\n  my_resources { a = 1 }\n}\n"),
            "task \"a\" {\n  config { image = \"x{//y\" }\n  my_resources { a = 1 }\n}\n");
  EXPECT_EQ(
      NormaliseSource("a.json", "{\"a\": 1, \"Resources\": {\"CPU\": {\"x\": \"}\"}}, \"b\": 2}"),
      "{\"a\": 1,  \"b\": 2}\n");
  EXPECT_EQ(NormaliseSource("a.json", "{\"a\": 1, \"resources\": {}}"), "{\"a\": 1}\n");
  EXPECT_EQ(NormaliseSource("a.hcl", "resources { a { b = 1\n"), "resources { a { b = 1\n")
      << "never closed";
}

TEST(NormaliseSource, AnyBytesSettle) {
  std::mt19937_64 random(7);
  const std::string words[] = {"#",       "\n",        "'",
                               "\"",      "\\",        " ",
                               ">",       "<<",        "EOF",
                               "srun",    "-n",        "4",
                               "--mem=1", "/*",        "*/",
                               "//",      "\"\"\"",    "{",
                               "}",       "resources", ":",
                               "&",       "|",         "tee",
                               "\t",      "--output",  "(",
                               "((",      "[[",        "apiVersion:",
                               "- ",      "\r",        "\xEF\xBB\xBF",
                               "#!",      "#SBATCH"};
  const char* names[] = {"a.sh", "a.py",  "a.yaml", "a.hcl", "a.json",
                         "a.c",  "a.lua", "a",      "a.R",   "a.m"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::size_t i = random() % 40; i > 0; --i) text += words[random() % std::size(words)];
    const char* name = names[random() % std::size(names)];
    const std::string once = NormaliseSource(name, text);
    ASSERT_EQ(NormaliseSource(name, once), once) << name << ": " << text;
    ASSERT_LE(once.size(), text.size() + 1);
  }
}

}  // namespace
}  // namespace expanse::intelligence::history
