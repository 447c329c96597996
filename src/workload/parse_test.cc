#include "workload/parse.h"

#include <gtest/gtest.h>

#include <string>

namespace expanse::workload {
namespace {

std::string Detected(std::string_view path, std::string_view text) {
  const auto format = DetectFormat(path, text);
  return format ? std::string(Name(*format)) : format.error().reason;
}

TEST(DetectFormat, ByContentFirst) {
  EXPECT_EQ(Detected("a.sh", "#!/bin/bash\n\n# x\n#SBATCH -n 1\nrun\n"), "sbatch");
  EXPECT_EQ(Detected("a.py", "#!/usr/bin/env python3\n#SBATCH -n 1\nimport os\n"), "sbatch");
  EXPECT_EQ(Detected("", "#!/bin/bash\ncd x\n#SBATCH -n 1\nrun\n"), "sbatch")
      << "ignored, but meant";
  EXPECT_EQ(Detected("a", "apiVersion: v1\nkind: Pod\n"), "kubernetes");
  EXPECT_EQ(Detected("a", "{\n  \"apiVersion\": \"v1\",\n \"kind\": \"Pod\"}"), "kubernetes");
  EXPECT_EQ(Detected("-", "apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n"), "kubernetes");
  EXPECT_EQ(Detected("a", "# x\njob \"train\" {\n}\n"), "nomad");
  EXPECT_EQ(Detected("a", "\"job\" \"old\" {\n}\n"), "nomad");
  EXPECT_EQ(Detected("a.tpl", "job [[ template \"name\" . ]] {\n}\n"), "nomad");
  EXPECT_EQ(Detected("a", "jobs \"a\" \"b\"\n"), "unknown_format");
  EXPECT_EQ(Detected("a.json", "{\"Job\": {\"TaskGroups\": []}}"), "nomad");
}

TEST(DetectFormat, ByNameWhereTheContentLeavesItOpen) {
  EXPECT_EQ(Detected("a.slurm", "#!/bin/bash\nrun\n"), "sbatch");
  EXPECT_EQ(Detected("x/y.SBATCH", "run\n"), "sbatch");
  EXPECT_EQ(Detected("a.yaml", "services:\n  web:\n"), "kubernetes") << "whose parser says why not";
  EXPECT_EQ(Detected("a.hcl", "variable \"x\" {}\n"), "nomad");
  EXPECT_EQ(Detected("a.nomad.tpl", "[[ if x ]]\n"), "nomad");
  EXPECT_EQ(Detected("a.py", "import torch\n"), "source");
  EXPECT_EQ(Detected("a", "#!/usr/bin/env -S python3 -u\nimport torch\n"), "source");
}

TEST(DetectFormat, ProgramsThatWriteSubmissionsArePrograms) {
  EXPECT_EQ(Detected("a.py", "M = '''\napiVersion: v1\nkind: Pod\n'''\n"), "source");
  EXPECT_EQ(Detected("a.sh", "#!/bin/sh\ncat > j <<E\n#!/bin/sh\n#SBATCH -n 2\nE\nsbatch j\n"),
            "source");
}

TEST(DetectFormat, Refusals) {
  EXPECT_EQ(Detected("notes.txt", "hello\n"), "unknown_format");
  EXPECT_EQ(Detected("", ""), "unknown_format");
  EXPECT_EQ(Detected("a.py", std::string_view("\x7f"
                                              "ELF\0\0",
                                              6)),
            "binary");
  EXPECT_EQ(Detected("a.py", std::string(kMaxText + 1, 'a')), "too_large");
}

TEST(Parse, DispatchesAndSourcesHaveNothingToChange) {
  const auto script = Parse("a.sbatch", "#!/bin/sh\n#SBATCH --mem=1G\nrun\n");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->format, Format::kSbatch);
  const auto source = Parse("dir/train.py", "import torch\n");
  ASSERT_TRUE(source);
  EXPECT_EQ(source->format, Format::kSource);
  const auto none = PlanEdits("train.py", "", *source, {});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  const auto edits = PlanEdits("train.py", "", *source, {{.amount = 1}});
  ASSERT_FALSE(edits);
  EXPECT_EQ(edits.error().reason, "patch.no_place");
}

}  // namespace
}  // namespace expanse::workload
