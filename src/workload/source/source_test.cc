#include "workload/source/source.h"

#include <gtest/gtest.h>

#include <string>

namespace expanse::workload {
namespace {

TEST(SourceLanguage, ByNameThenByTheFirstLine) {
  EXPECT_EQ(SourceLanguage("a/b/Train.PY", ""), "python");
  EXPECT_EQ(SourceLanguage("Snakefile", ""), "snakemake");
  EXPECT_EQ(SourceLanguage("x.R", ""), "r");
  EXPECT_EQ(SourceLanguage("main.nf", ""), "nextflow");
  EXPECT_EQ(SourceLanguage("k.cu", ""), "cuda");
  EXPECT_EQ(SourceLanguage("nb.ipynb", ""), "notebook");
  EXPECT_EQ(SourceLanguage("run", "#!/bin/bash -l\n"), "shell");
  EXPECT_EQ(SourceLanguage("run", "#! /usr/bin/env -S FOO=1 python3.11 -u\n"), "python");
  EXPECT_EQ(SourceLanguage("run.x", "#!/opt/R/4.2/bin/Rscript"), "r");
  EXPECT_EQ(SourceLanguage("run", "#!/usr/bin/env\n"), "");
  EXPECT_EQ(SourceLanguage("README.md", "hello"), "");
}

TEST(ParseSource, APythonFileRunsItself) {
  const auto parsed = ParseSource("dir/train.py", "import torch\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->language, "python");
  EXPECT_EQ(parsed->name, "train");
  ASSERT_EQ(parsed->parts.size(), 1U);
  const Part& part = parsed->parts[0];
  EXPECT_EQ(part.kind, "python");
  EXPECT_EQ(part.request, Request{});
  EXPECT_TRUE(part.settings.empty());
  ASSERT_EQ(part.commands.size(), 1U);
  EXPECT_EQ(part.commands[0].words,
            (std::vector<Word>{{.text = "python"}, {.text = "dir/train.py"}}));
}

TEST(ParseSource, AShellScriptHasItsCommandsAndFiles) {
  const auto parsed = ParseSource(
      "run.sh",
      "#!/bin/bash\nexport OMP_NUM_THREADS=4\npython train.py --config c.yaml $X.py\n./post\n"
      "python train.py\nwget https://host/a.py\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->language, "shell");
  EXPECT_EQ(parsed->parts[0].commands.size(), 4U);
  EXPECT_EQ(parsed->parts[0].environment.at("OMP_NUM_THREADS"), "4");
  EXPECT_EQ(parsed->files, (std::vector<std::string>{"train.py", "c.yaml", "./post"}));
}

TEST(ParseSource, OtherLanguages) {
  const auto compiled = ParseSource("main.f90", "program x\nend\n");
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->language, "fortran");
  EXPECT_TRUE(compiled->parts[0].commands.empty());
  const auto workflow = ParseSource("Snakefile", "rule all:\n");
  ASSERT_TRUE(workflow);
  EXPECT_EQ(workflow->parts[0].commands[0].words[0].text, "snakemake");
}

TEST(ParseSource, Refusals) {
  EXPECT_EQ(ParseSource("a.txt", "x").error().reason, "unknown_format");
  EXPECT_EQ(ParseSource("a.py", std::string_view("a\0b", 3)).error().reason, "binary");
  EXPECT_EQ(ParseSource("a.py", std::string(kMaxText + 1, 'x')).error().reason, "too_large");
}

}  // namespace
}  // namespace expanse::workload
