#include "cli/analyse_target.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/files.h"
#include "cli/patch_apply.h"
#include "collect/sources/source_bundle.h"

namespace expanse::cli {
namespace {

const std::string kSecret = std::string("hf") + "_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j";

base::Result<std::string> NoInput(std::size_t) {
  return base::Fail(base::Code::kInternal, "test", "standard input was read");
}

// In a directory of its own, as sbatch is called.
class ReadTargetTest : public testing::Test {
 protected:
  ReadTargetTest() : directory_(*base::TempDir::Create("expanse-target")) {
    std::array<char, 4096> here{};
    before_ = ::getcwd(here.data(), here.size());
    EXPECT_EQ(::chdir(directory_.path().c_str()), 0);
  }
  ~ReadTargetTest() override { EXPECT_EQ(::chdir(before_.c_str()), 0); }
  void Write(const std::string& path, const std::string& text) {
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos) {
      ASSERT_TRUE(base::MakeDirectories(directory_.path() + "/" + path.substr(0, slash)));
    }
    ASSERT_TRUE(base::WriteFileAtomically(directory_.path() + "/" + path, text, 0644));
  }
  std::vector<std::string> Names(const AnalyseTarget& target) {
    std::vector<std::string> names;
    for (const SentFile& file : target.files) names.push_back(file.role + " " + file.path);
    return names;
  }

  base::TempDir directory_;
  std::string before_;
};

TEST_F(ReadTargetTest, BatchScriptBringsWhatItNames) {
  Write("jobs/train.slurm", "#!/bin/bash\n#SBATCH --mem=1G\nexport HF_TOKEN=" + kSecret +
                                "\nsource lib/env.sh\nsrun python train.py --config=cfg.yaml\n");
  Write("lib/env.sh", "export A=1\n");
  Write("train.py", "import model\n");
  Write("model.py", "x = 1\n");
  Write("cfg.yaml", "epochs: 3\npassword: hunter2hunter2\n");
  const auto target = ReadTarget("jobs/train.slurm", NoInput);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->format, workload::Format::kSbatch);
  EXPECT_EQ(target->file.path, "jobs/train.slurm");
  EXPECT_NE(target->file.data.find("HF_TOKEN=[redacted]"), std::string::npos);
  EXPECT_EQ(Names(*target), (std::vector<std::string>{"import lib/env.sh", "import train.py",
                                                      "import model.py", "argument cfg.yaml"}));
  for (const SentFile& file : target->files)
    EXPECT_EQ(file.data.find("hunter2"), std::string::npos) << file.path;
}

TEST_F(ReadTargetTest, ScriptsThatRunElsewhereNameFilesThere) {
  Write("job.slurm", "#!/bin/bash\n#SBATCH --chdir=work\npython train.py\n");
  Write("train.py", "here = 1\n");
  Write("work/train.py", "there = 1\n");
  const auto target = ReadTarget("job.slurm", NoInput);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(Names(*target), std::vector<std::string>{"import work/train.py"});
  EXPECT_EQ(target->files.at(0).data, "there = 1\n");
}

// What the daemon takes of a job that was submitted from here, and what is asked about, are the
// same bytes.
TEST_F(ReadTargetTest, SendsWhatCaptureTakes) {
  const std::string text = "#!/bin/bash\n#SBATCH --mem=1G\nsrun python train.py\n";
  Write("train.slurm", text);
  Write("train.py", "import os\nTOKEN = '" + kSecret + "'\n");
  collect::SourceRequest request{.command = {directory_.path() + "/train.slurm"},
                                 .program = {},
                                 .working_directory = directory_.path(),
                                 .extra = {},
                                 .limits = {}};
  request.script = text;
  request.script_path = request.command[0];
  const auto captured = collect::CollectSources(request);
  const auto target = ReadTarget("train.slurm", NoInput);
  ASSERT_TRUE(target) << target.error().message;
  ASSERT_EQ(captured.files.size(), target->files.size() + 1);
  EXPECT_EQ(captured.files[0].data, target->file.data);
  EXPECT_EQ(captured.files[0].role, target->file.role);
  EXPECT_EQ(captured.files[1].data, target->files[0].data);
  EXPECT_EQ(captured.files[1].role, target->files[0].role);
}

TEST_F(ReadTargetTest, SourceFileBringsItsImports) {
  Write("pkg/train.py", "from model import net\nimport helpers\n");
  Write("pkg/model.py", "net = 1\n");
  Write("helpers.py", "y = 2\n");
  Write("unrelated.py", "z = 3\n");
  const auto target = ReadTarget("pkg/train.py", NoInput);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->format, workload::Format::kSource);
  EXPECT_EQ(Names(*target), (std::vector<std::string>{"import pkg/model.py", "import helpers.py"}));
  const auto absolute = ReadTarget(directory_.path() + "/pkg/train.py", NoInput);
  ASSERT_TRUE(absolute);
  EXPECT_EQ(Names(*absolute), Names(*target));
}

TEST_F(ReadTargetTest, ManifestsAndJobspecsComeAlone) {
  Write(
      "job.yaml",
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n"
      "      containers:\n      - name: main\n        image: i\n        command: [python, x.py]\n");
  Write("x.py", "pass\n");
  const auto target = ReadTarget("job.yaml", NoInput);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->format, workload::Format::kKubernetes);
  EXPECT_TRUE(target->files.empty());
}

TEST_F(ReadTargetTest, StandardInputIsAFileToo) {
  Write("train.py", "pass\n");
  const auto target = ReadTarget("-", [](std::size_t) -> base::Result<std::string> {
    return "#!/bin/bash\n#SBATCH --mem=1G\npython train.py\n";
  });
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->file.path, "-");
  EXPECT_EQ(Names(*target), std::vector<std::string>{"import train.py"});
}

TEST_F(ReadTargetTest, SendsNothingOfWhatIsNoWorkload) {
  Write("empty.slurm", "");
  Write("big.slurm", std::string(workload::kMaxText + 1, 'x'));
  Write("program", std::string("\x7f") + "ELF\0\0\0" + std::string(100, '\0'));
  Write("notes", "these are my notes\n");
  Write("id_rsa", "#!/bin/sh\necho key\n");
  ASSERT_EQ(::mkfifo("fifo", 0600), 0);
  const auto reason = [](const std::string& path) {
    const auto target = ReadTarget(path, NoInput);
    return target ? "taken" : target.error().reason;
  };
  EXPECT_EQ(reason("empty.slurm"), "target.empty");
  EXPECT_EQ(reason("big.slurm"), "target.too_large");
  EXPECT_TRUE(reason("program").starts_with("target.")) << reason("program");
  EXPECT_EQ(reason("notes"), "target.unknown_format");
  EXPECT_EQ(reason("id_rsa"), "target.secret_name");
  EXPECT_EQ(reason("fifo"), "files.not_regular");
  EXPECT_EQ(reason("."), "files.not_regular");
  EXPECT_EQ(reason("missing.slurm"), "files.not_found");
  for (const char* path : {"empty.slurm", "big.slurm", "program", "notes", "id_rsa", "fifo"})
    EXPECT_EQ(ReadTarget(path, NoInput).error().code, base::Code::kInvalidArgument) << path;
}

}  // namespace
}  // namespace expanse::cli
