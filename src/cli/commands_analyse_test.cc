#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/crypto.h"
#include "cli/analyse_testing.h"
#include "cli/cli_testing.h"
#include "cli/patch_apply.h"
#include "workload/patch/unified_diff.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

const std::string kTestData = std::string(EXPANSE_SOURCE_DIR) + "/testdata";
const std::string kSecret = std::string("hf") + "_Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j";
const std::string kScript =
    "#!/bin/bash\n#SBATCH --mem=128G\nexport HF_TOKEN=" + kSecret + "\nsrun python train.py\n";
const std::string kPrompt = "Apply the resource recommendations automatically? [y/n] ";

std::string Patched(std::string text) { return text.replace(text.find("128G"), 4, "15G"); }

class AnalyseCommands : public testing::Test {
 protected:
  AnalyseCommands() {
    EXPECT_TRUE(base::WriteFileAtomically(script_, kScript, 0755));
    platform_.analysis.set_run_id(kExampleRun);
    platform_.analysis.set_status(v1::RUN_STATUS_SUCCEEDED);
    *platform_.analysis.mutable_result() = ExampleResult();
    platform_.analysis.mutable_result()->mutable_right_size()->set_source_file(script_);
    platform_.analysis.mutable_result()->mutable_right_size()->set_artifact_id(kExampleArtefact);
    v1::Artifact artefact;
    artefact.set_artifact_id(kExampleArtefact);
    artefact.set_artifact_type(v1::ARTIFACT_TYPE_UNIFIED_DIFF);
    artefact.set_source_file(script_);
    artefact.set_source_hash(SourceHash(kScript));
    const std::string sent = RedactedForServer(kScript);
    artefact.set_data(workload::MakeUnifiedDiff("train.slurm", sent, Patched(sent)));
    artefact.set_content_hash("sha256:" + base::Sha256Hex(artefact.data()));
    platform_.artefacts.push_back(artefact);
    harness_.SignIn(platform_);
    harness_.app.environment["USER"] = "ada";
  }
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), "analyse");
    return harness_.Run(words);
  }
  std::string Script() { return *base::ReadFile(script_); }

  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
  const std::string script_ = harness_.home.path() + "/train.slurm";
};

TEST_F(AnalyseCommands, AsksWithWhatTheUserHasAndPrintsTheAnswer) {
  platform_.computes.emplace_back().set_compute_id("0191e7a0-0000-7000-8000-00000000dddd");
  platform_.computes.back().set_name("hpc");
  ASSERT_EQ(Run({script_, "--compute", "hpc", "--cpu", "500m", "--memory=16GiB", "--gpu", "2",
                 "--walltime", "1-02:00:00", "--workload", "w", "--no-cache"}),
            0)
      << terminal_.err;
  EXPECT_TRUE(terminal_.out.starts_with("EXPANSE ANALYSE\ntarget    " + script_ + "\n"))
      << terminal_.out;
  EXPECT_EQ(terminal_.err, "");
  ASSERT_EQ(platform_.analysed.size(), 1U);
  const v1::AnalyseRequest& asked = platform_.analysed[0];
  EXPECT_EQ(asked.target().path(), script_);
  EXPECT_EQ(asked.target().data(), RedactedForServer(kScript));
  EXPECT_EQ(asked.target().data().find(kSecret), std::string::npos);
  EXPECT_EQ(asked.target().role(), "script");
  EXPECT_EQ(asked.compute_id(), "0191e7a0-0000-7000-8000-00000000dddd");
  EXPECT_EQ(asked.requested().cpu_cores(), 0.5);
  EXPECT_EQ(asked.requested().memory_bytes(), std::uint64_t{16} << 30);
  EXPECT_EQ(asked.requested().gpu_count(), 2U);
  EXPECT_EQ(asked.requested().walltime_seconds(), 26 * 3600);
  EXPECT_EQ(asked.local_user(), "ada");
  EXPECT_EQ(asked.workload(), "w");
  EXPECT_TRUE(asked.no_cache());
  EXPECT_FALSE(asked.no_patch() || asked.queue());
  EXPECT_EQ(Script(), kScript);
}

TEST_F(AnalyseCommands, WithoutFlagsNothingIsOverridden) {
  ASSERT_EQ(harness_.Run({"analyze", script_}), 0) << terminal_.err;
  const v1::RequestedOverride& requested = platform_.analysed.at(0).requested();
  EXPECT_FALSE(requested.has_cpu_cores() || requested.has_memory_bytes() ||
               requested.has_gpu_count() || requested.has_walltime_seconds());
  EXPECT_EQ(platform_.analysed[0].compute_id(), "");
}

TEST_F(AnalyseCommands, JsonIsTheApis) {
  platform_.analysis.set_cached(true);
  platform_.analysis.mutable_result()->mutable_right_size()->set_source_file("train.slurm");
  ASSERT_EQ(Run({script_, "--json"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "analyse.json", terminal_.out);
  EXPECT_EQ(terminal_.err, "");
}

TEST_F(AnalyseCommands, VariablesGoAlongWithoutSecrets) {
  ASSERT_EQ(Run({script_, "--var", "memory=4096", "--var", "a=b=c", "--var", "t=" + kSecret}), 0)
      << terminal_.err;
  const auto& variables = platform_.analysed.at(0).variables();
  EXPECT_EQ(variables.at("memory"), "4096");
  EXPECT_EQ(variables.at("a"), "b=c");
  EXPECT_EQ(variables.at("t"), "[redacted]");
  EXPECT_EQ(Run({script_, "--var", "memory"}), 2);
}

TEST_F(AnalyseCommands, MistakesOnTheCommandLine) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {script_, "--cpu", "0"},
                                                {script_, "--cpu", "many"},
                                                {script_, "--cpu", "-1"},
                                                {script_, "--cpu", "nan"},
                                                {script_, "--memory", "0"},
                                                {script_, "--gpu", "-1"},
                                                {script_, "--yes", "--json"},
                                                {script_, "--yes", "--no-patch"},
                                                {script_, "--yes", "--queue"},
                                                {"-", "--yes"},
                                                {"-", "-"},
                                                {"--yes", "list"},
                                                {"diff"},
                                                {"apply", "--file", script_}}) {
    EXPECT_EQ(Run(words), 2) << terminal_.err;
    EXPECT_NE(terminal_.err, "");
  }
  EXPECT_EQ(platform_.analysed.size(), 0U);
}

TEST_F(AnalyseCommands, RefusesHereWhatIsNoWorkload) {
  const std::string notes = harness_.home.path() + "/notes";
  ASSERT_TRUE(base::WriteFileAtomically(notes, "buy milk\n", 0644));
  EXPECT_EQ(Run({notes}), 2);
  EXPECT_EQ(Run({notes + "x"}), 3);
  EXPECT_EQ(platform_.analysed.size(), 0U);
}

TEST_F(AnalyseCommands, SeveralFilesAreSeveralRuns) {
  const std::string copy = harness_.home.path() + "/copy.slurm";
  ASSERT_TRUE(base::WriteFileAtomically(copy, kScript, 0644));
  EXPECT_EQ(Run({script_, harness_.home.path() + "/none.slurm", copy}), 3);
  EXPECT_EQ(platform_.analysed.size(), 2U);
  EXPECT_NE(terminal_.out.find("\n\nEXPANSE ANALYSE\ntarget    " + copy + "\n"), std::string::npos)
      << terminal_.out;
  EXPECT_NE(terminal_.err.find("none.slurm"), std::string::npos);
  // What the next one would meet too ends it.
  platform_.analysed.clear();
  platform_.FailWith("Analyse", {base::Code::kPermissionDenied, "no", "not allowed"});
  EXPECT_EQ(Run({script_, copy}), 4);
  EXPECT_EQ(terminal_.err.find("not allowed"), terminal_.err.rfind("not allowed"));
}

TEST_F(AnalyseCommands, StandardInputHasNoPatch) {
  terminal_.input = kScript;
  terminal_.can_ask = true;
  ASSERT_EQ(Run({"-"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.analysed.at(0).target().path(), "-");
  EXPECT_TRUE(platform_.analysed[0].no_patch());
  EXPECT_EQ(terminal_.err, "");
}

TEST_F(AnalyseCommands, QueuedRunsAreShownLater) {
  platform_.analysis.clear_result();
  platform_.analysis.set_status(v1::RUN_STATUS_QUEUED);
  ASSERT_EQ(Run({script_, "--queue"}), 0) << terminal_.err;
  EXPECT_TRUE(platform_.analysed.at(0).queue());
  EXPECT_EQ(terminal_.out, "EXPANSE ANALYSE\ntarget  " + script_ + "\nrun     " + kExampleRun +
                               "\nstatus  run_status_queued\n");
  EXPECT_EQ(terminal_.err, "Later: expanse analyse show " + kExampleRun + "\n");
}

TEST_F(AnalyseCommands, YesAtThePromptShowsTheDiffAndApplies) {
  terminal_.can_ask = true;
  terminal_.answers = {"what?", "y"};
  ASSERT_EQ(Run({script_}), 0) << terminal_.err;
  EXPECT_TRUE(terminal_.err.starts_with(kPrompt + kPrompt)) << terminal_.err;
  EXPECT_NE(terminal_.err.find("Applied to " + script_ + ": +1 -1 lines."), std::string::npos);
  EXPECT_TRUE(terminal_.out.ends_with(platform_.artefacts[0].data()));
  EXPECT_EQ(Script(), Patched(kScript));  // with the secret that never left
  struct stat info{};
  ASSERT_EQ(::stat(script_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755U);
}

TEST_F(AnalyseCommands, NoAtThePromptLeavesTheCommands) {
  terminal_.can_ask = true;
  terminal_.answers = {"N"};
  ASSERT_EQ(Run({script_}), 0);
  EXPECT_EQ(terminal_.err, kPrompt + "Later:\n  expanse analyse diff --artefact " +
                               kExampleArtefact + "\n  expanse analyse apply --artefact " +
                               kExampleArtefact + "\n");
  EXPECT_EQ(Script(), kScript);
  terminal_.answers = {};
  EXPECT_EQ(Run({script_}), 130);  // Ctrl-C
  EXPECT_EQ(Script(), kScript);
}

TEST_F(AnalyseCommands, NobodyIsAskedWithoutAPatchOrAPerson) {
  ASSERT_EQ(Run({script_}), 0);  // no terminal
  EXPECT_EQ(terminal_.err, "");
  terminal_.can_ask = true;
  ASSERT_EQ(Run({script_, "--no-patch"}), 0);
  EXPECT_EQ(terminal_.err, "");
  EXPECT_TRUE(platform_.analysed.back().no_patch());
  ASSERT_EQ(Run({script_, "--json"}), 0);
  EXPECT_EQ(terminal_.err, "");
  platform_.analysis.mutable_result()->clear_right_size();
  ASSERT_EQ(Run({script_}), 0);
  EXPECT_EQ(terminal_.err, "");
  ASSERT_EQ(Run({script_, "--yes"}), 0);
  EXPECT_EQ(terminal_.err, "There is nothing to apply.\n");
}

TEST_F(AnalyseCommands, YesFlagAppliesWithoutAsking) {
  platform_.analysis.mutable_result()->mutable_right_size()->set_source_file("/etc/passwd");
  ASSERT_EQ(Run({script_, "--yes"}), 0) << terminal_.err;
  EXPECT_EQ(Script(), Patched(kScript));
}

TEST_F(AnalyseCommands, DiffPrintsThePatch) {
  for (const char* spelling : {"--artefact", "--artifact"}) {
    ASSERT_EQ(Run({"diff", spelling, kExampleArtefact}), 0) << terminal_.err;
    EXPECT_EQ(terminal_.out, platform_.artefacts[0].data());
  }
  EXPECT_EQ(Run({"diff", "--artefact", "x"}), 3);
  platform_.artefacts[0].set_content_hash("sha256:00");
  EXPECT_EQ(Run({"diff", "--artefact", kExampleArtefact}), 1);
  EXPECT_EQ(terminal_.out, "");
}

TEST_F(AnalyseCommands, ApplyRefusesAFileThatChanged) {
  ASSERT_EQ(Run({"apply", "--artefact", kExampleArtefact}), 0) << terminal_.err;
  EXPECT_EQ(Script(), Patched(kScript));
  EXPECT_EQ(Run({"apply", "--artefact", kExampleArtefact}), 6);
  EXPECT_NE(terminal_.err.find("has changed since it was analysed"), std::string::npos);
  EXPECT_NE(terminal_.err.find("Try: expanse analyse " + script_), std::string::npos);
  EXPECT_EQ(Script(), Patched(kScript));
}

TEST_F(AnalyseCommands, ApplyTakesAnotherFile) {
  const std::string copy = harness_.home.path() + "/copy.slurm";
  ASSERT_TRUE(base::WriteFileAtomically(copy, kScript, 0644));
  ASSERT_EQ(Run({"apply", "--artifact", kExampleArtefact, "--file", copy}), 0) << terminal_.err;
  EXPECT_EQ(*base::ReadFile(copy), Patched(kScript));
  EXPECT_EQ(Script(), kScript);
  platform_.artefacts[0].set_source_file("-");
  EXPECT_EQ(Run({"apply", "--artefact", kExampleArtefact}), 2);
}

TEST_F(AnalyseCommands, FilesNamedLikeSubcommandsAreReachable) {
  const std::string named = harness_.home.path() + "/diff";
  ASSERT_TRUE(base::WriteFileAtomically(named, kScript, 0644));
  EXPECT_EQ(Run({named}), 0) << terminal_.err;
  EXPECT_EQ(Run({"--", "diff"}), 3);  // a file, which is not here
  EXPECT_NE(terminal_.err.find("diff: no such file"), std::string::npos) << terminal_.err;
}

TEST_F(AnalyseCommands, ListsAndShowsRuns) {
  v1::Run run;
  run.set_run_id(kExampleRun);
  run.set_kind(v1::RUN_KIND_ANALYSE);
  run.set_status(v1::RUN_STATUS_SUCCEEDED);
  run.set_target("train.slurm");
  run.set_job_name("train");
  run.set_user_id("0191e7a0-0000-7000-8000-00000000aaaa");
  run.mutable_created_at()->set_seconds(1'790'000'000);
  *run.mutable_analyse() = ExampleResult();
  platform_.runs = {run, run, run};
  platform_.runs[1].set_run_id("0191e7a0-1111-7000-8000-00000000bbbb");
  platform_.runs[1].set_status(v1::RUN_STATUS_QUEUED);
  platform_.runs[1].clear_analyse();
  platform_.runs[2].set_run_id("0191e7a0-1111-7000-8000-00000000cccc");
  platform_.runs[2].set_status(v1::RUN_STATUS_FAILED);
  platform_.runs[2].set_error("it took longer than 30 s");
  platform_.runs[2].clear_analyse();
  platform_.page_limit = 2;
  ASSERT_EQ(Run({"list", "--all-users"}), 0) << terminal_.err;
  ExpectGolden(kTestData, "analyse-list.txt", terminal_.out);
  EXPECT_TRUE(platform_.runs_listed.all_users());
  EXPECT_EQ(platform_.runs_listed.kind(), v1::RUN_KIND_ANALYSE);
  ASSERT_EQ(Run({"list", "--limit", "1"}), 0);
  EXPECT_EQ(std::count(terminal_.out.begin(), terminal_.out.end(), '\n'), 2);

  ASSERT_EQ(Run({"show", kExampleRun}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out, *base::ReadFile(kTestData + "/analyse.txt"));
  ASSERT_EQ(Run({"show", platform_.runs[1].run_id()}), 0);
  EXPECT_EQ(terminal_.err, "It is not done yet.\n");
  ASSERT_EQ(Run({"show", platform_.runs[2].run_id()}), 0);
  EXPECT_NE(terminal_.out.find("error     it took longer than 30 s\n"), std::string::npos);
  EXPECT_EQ(Run({"show", "x"}), 3);
  ASSERT_EQ(Run({"show", kExampleRun, "--json"}), 0);
  EXPECT_NE(terminal_.out.find("\"run_id\": \"" + kExampleRun), std::string::npos);
}

TEST_F(AnalyseCommands, WithoutAnIntelligencePlaneItSaysSo) {
  platform_.has_intelligence = false;
  harness_.SignIn(platform_);
  EXPECT_EQ(Run({script_}), 6);
  EXPECT_NE(terminal_.err.find("no intelligence plane"), std::string::npos) << terminal_.err;
}

}  // namespace
}  // namespace expanse::cli
