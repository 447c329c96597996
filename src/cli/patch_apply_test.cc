#include "cli/patch_apply.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "workload/patch/unified_diff.h"

namespace expanse::cli {
namespace {

// Put together from pieces, so that scanners of this repository find nothing in it.
const std::string kSecret = std::string("hf") + "_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j";
const std::string kScript =
    "#!/bin/bash\n"
    "#SBATCH --job-name=train\n"
    "#SBATCH --mem=128G\n"
    "#SBATCH --time=1:00:00\n"
    "export HF_TOKEN=" +
    kSecret +
    "\n"
    "srun python train.py\n";

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// What a server makes of what it was sent: a diff of two redacted texts.
struct Served {
  std::string diff;
  std::string source_hash;
};
Served Serve(const std::string& original, std::string_view from, std::string_view to) {
  const std::string sent = RedactedForServer(original);
  EXPECT_EQ(sent.find(kSecret), std::string::npos);
  return {workload::MakeUnifiedDiff("job.sh", sent, Replaced(sent, from, to)),
          SourceHash(original)};
}
base::Result<std::string> Patch(const Served& served, const std::string& original) {
  return PatchOriginal({.path = "job.sh", .diff = served.diff, .source_hash = served.source_hash},
                       original);
}

TEST(PatchOriginal, ChangesBesideASecretThatTheServerNeverSaw) {
  const Served served = Serve(kScript, "--mem=128G", "--mem=15G");
  EXPECT_NE(served.diff.find("[redacted]"), std::string::npos) << served.diff;  // in the context
  const auto patched = Patch(served, kScript);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(*patched, Replaced(kScript, "--mem=128G", "--mem=15G"));
}

TEST(PatchOriginal, ChangesTheLineThatHoldsASecret) {
  const std::string script =
      Replaced(kScript, "--mem=128G\n", "--mem=128G --comment=token=" + kSecret + "\n");
  const auto patched = Patch(Serve(script, "--mem=128G", "--mem=15G"), script);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(*patched, Replaced(script, "--mem=128G", "--mem=15G"));
}

TEST(PatchOriginal, KeepsSecretsOfSeveralLinesAndMarksOfTheUsersOwn) {
  const std::string key = "-----BEGIN RSA PRIVATE" + std::string(" KEY-----\nMIIEow\nIBAAKC\n") +
                          "-----END RSA PRIVATE" + std::string(" KEY-----\n");
  const std::string script =
      Replaced(kScript, "srun", "# was [redacted]\ncat <<E >key\n" + key + "E\nsrun");
  const auto patched = Patch(Serve(script, "--time=1:00:00", "--time=2:30:00"), script);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(*patched, Replaced(script, "--time=1:00:00", "--time=2:30:00"));
}

TEST(PatchOriginal, InsertsLinesAndKeepsLineEndings) {
  std::string script;
  for (const char c : kScript) script += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto patched =
      Patch(Serve(script, "#SBATCH --time", "#SBATCH --cpus-per-task=4\r\n#SBATCH --time"), script);
  ASSERT_TRUE(patched) << patched.error().message;
  EXPECT_EQ(*patched,
            Replaced(script, "#SBATCH --time", "#SBATCH --cpus-per-task=4\r\n#SBATCH --time"));
}

TEST(PatchOriginal, RefusesAFileThatChanged) {
  const Served served = Serve(kScript, "--mem=128G", "--mem=15G");
  for (const std::string& other :
       {kScript + "\n", Replaced(kScript, "128G", "15G"), std::string()}) {
    const auto patched = Patch(served, other);
    ASSERT_FALSE(patched);
    EXPECT_EQ(patched.error().reason, "patch.changed");
    EXPECT_EQ(patched.error().code, base::Code::kFailedPrecondition);
  }
  // Another secret is none of the server's business.
  const auto rotated = Patch(served, Replaced(kScript, "Ab3d", "Xb3d"));
  ASSERT_TRUE(rotated) << rotated.error().message;
  EXPECT_NE(rotated->find("Xb3d"), std::string::npos);
}

TEST(PatchOriginal, RefusesToMoveSecrets) {
  const std::string mark = "[redacted]";
  for (const std::string& to :
       {std::string("export HF_TOKEN=\n"), "export HF_TOKEN=" + mark + " A=" + mark + "\n"}) {
    const auto patched = Patch(Serve(kScript, "export HF_TOKEN=" + mark + "\n", to), kScript);
    ASSERT_FALSE(patched) << *patched;
    EXPECT_EQ(patched.error().reason, "patch.secret");
  }
}

TEST(PatchOriginal, RefusesAServersChangeOfWhatRuns) {
  for (const char* to : {"srun python evil.py", "rm -rf /; srun python train.py",
                         "srun python train.py\ncurl example.org"}) {
    const auto patched = Patch(Serve(kScript, "srun python train.py", to), kScript);
    ASSERT_FALSE(patched) << *patched;
    EXPECT_EQ(patched.error().reason, "patch.not_resources") << to;
  }
  for (const char* to :
       {"#SBATCH --container=/x\n#SBATCH --time", "#SBATCH --cpus-per-task=4 -o x\n#SBATCH --time",
        "#SBATCH --partition=x --time", "\n#SBATCH --time"}) {
    const auto patched = Patch(Serve(kScript, "#SBATCH --time", to), kScript);
    ASSERT_FALSE(patched) << *patched;
    EXPECT_EQ(patched.error().reason, "patch.not_resources") << to;
  }
  const auto renamed = Patch(Serve(kScript, "job-name=train", "job-name=other"), kScript);
  ASSERT_FALSE(renamed);
  EXPECT_EQ(renamed.error().reason, "patch.not_resources");
  const auto written =
      Patch(Serve(kScript, "#SBATCH --time", "#SBATCH -o /etc/x\n#SBATCH --time"), kScript);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().reason, "patch.not_resources");
}

TEST(PatchOriginal, RefusesWhatIsNoDiff) {
  for (const char* diff : {"junk", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-no such line\n+x\n"}) {
    const auto patched = PatchOriginal(
        {.path = "job.sh", .diff = diff, .source_hash = SourceHash(kScript)}, kScript);
    ASSERT_FALSE(patched) << diff;
    EXPECT_TRUE(patched.error().reason.starts_with("diff.")) << patched.error().reason;
  }
}

TEST(CountLines, CountsWhatHunksSay) {
  const DiffLines lines = CountLines("--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n-b\n+c\n+d\n--- e\n");
  EXPECT_EQ(lines.added, 2U);
  EXPECT_EQ(lines.removed, 2U);
}

}  // namespace
}  // namespace expanse::cli
