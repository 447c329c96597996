#include "intelligence/history/indexed_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "intelligence/history/history_testing.h"

namespace expanse::intelligence::history {
namespace {

using predict::Basis;
using Names = std::vector<std::string>;

const std::string kScript =
    "#!/bin/bash\n#SBATCH --mem=16G\nmodule load cuda python\nexport OMP_NUM_THREADS=4\n"
    "cd $HOME/project\nsource venv/bin/activate\nsrun python train.py --data /data/set --lr 3e-4\n"
    "python evaluate.py --checkpoint best.pt\necho finished\n";
const std::string kTrain =
    "import torch\nmodel = torch.nn.Linear(10, 10)\nfor step in range(100):\n  model.train()\n";

std::vector<TestFile> Script(const std::string& text = kScript) {
  return {{.path = "/home/mara/job.sh", .role = "script", .data = text}};
}
std::vector<TestFile> ScriptAndTrain(const std::string& train = kTrain) {
  return {{.path = "/home/mara/job.sh", .role = "script", .data = kScript},
          {.path = "/home/mara/train.py", .role = "import", .data = train}};
}
std::string With(const std::string& text, const std::string& from, const std::string& to) {
  std::string changed = text;
  changed.replace(changed.find(from), from.size(), to);
  return changed;
}

class IndexedHistoryTest : public HistoryWorld {};

TEST_F(IndexedHistoryTest, NothingIsKnownOfTheUnknown) {
  CatchUp();
  const Found found = Find(Ask(Script()));
  EXPECT_EQ(found.basis, Basis::kNone);
  EXPECT_TRUE(found.runs.empty());
  EXPECT_FALSE(found.version.empty());
  EXPECT_FALSE(history_->Find({.organisation_id = "", .compute_id = "", .fingerprint = {}}));
}

TEST_F(IndexedHistoryTest, SaysWhenItIsBehind) {
  Put({.id = "r1", .files = Script()});
  const Found early = Find(Ask(Script()));
  ASSERT_EQ(early.notes.size(), 1U);
  EXPECT_NE(early.notes[0].find("behind"), std::string::npos);
  CatchUp();
  const Found whole = Find(Ask(Script()));
  EXPECT_TRUE(whole.notes.empty());
  Open();  // one that was whole counts as such when it is opened again
  EXPECT_EQ(Find(Ask(Script())).version, whole.version);
  clock_.Advance(std::chrono::minutes(5));
  const Found late = Find(Ask(Script()));
  EXPECT_EQ(late.notes.size(), 1U);
  EXPECT_NE(late.version, whole.version);
  CatchUp();
  EXPECT_EQ(Find(Ask(Script())).version, whole.version);
}

TEST_F(IndexedHistoryTest, RunsOfTheSameSourceWhateverWasAskedFor) {
  for (int i = 1; i <= 4; ++i)
    Put({.id = "r" + std::to_string(i), .memory_gib = 4.0 + i, .files = Script()});
  CatchUp();
  const Found found = Find(Ask(Script(With(kScript, "--mem=16G", "--mem=128G --time=1:00:00"))));
  EXPECT_EQ(found.basis, Basis::kExactBundle);
  EXPECT_EQ(Ids(found), (Names{"r1", "r2", "r3", "r4"})) << "oldest first";
  EXPECT_EQ(found.similarity, 1);
  EXPECT_TRUE(found.notes.empty());
  const predict::Run& run = found.runs[0];
  EXPECT_EQ(run.native_id, "job-r1");
  EXPECT_EQ(run.ending, predict::Ending::kSuccess);
  EXPECT_EQ(run.memory_peak_bytes, 5.0 * (1ULL << 30));
  EXPECT_FALSE(run.memory_is_floor);
  EXPECT_EQ(run.runtime_s, 600);
  EXPECT_EQ(run.cpu_mean_cores, 2);
  EXPECT_EQ(run.requested.memory_bytes, 16.0 * (1ULL << 30));
  EXPECT_EQ(run.similarity, 1);
  EXPECT_EQ(found.origins.at(0).compute_id, "c1");
  EXPECT_TRUE(found.origins.at(0).same_arguments);
}

TEST_F(IndexedHistoryTest, AChangedFileOfTheBundleIsAnotherSource) {
  Put({.id = "v1", .files = ScriptAndTrain()});
  Put({.id = "v2", .files = ScriptAndTrain(With(kTrain, "Linear(10, 10)", "Linear(9999, 10)"))});
  CatchUp();
  EXPECT_EQ(Ids(Find(Ask(ScriptAndTrain()))), Names{"v1"});
  const Found scriptless = Find(Ask(Script()));
  EXPECT_EQ(scriptless.basis, Basis::kExactBundle) << "by what both know";
  EXPECT_EQ(Ids(scriptless), (Names{"v1", "v2"}));
  EXPECT_EQ(scriptless.notes.size(), 1U);
}

TEST_F(IndexedHistoryTest, ASourceFileIsFoundInTheBundlesThatHaveIt) {
  Put({.id = "with", .files = ScriptAndTrain()});
  Put({.id = "without", .files = Script()});
  CatchUp();
  const Found found = Find(Ask({{.path = "train.py", .role = "script", .data = kTrain}}));
  EXPECT_EQ(found.basis, Basis::kExactBundle);
  EXPECT_EQ(Ids(found), Names{"with"});
  // A bundle that lacks what was given counts for the script that it is of, not for any file.
  EXPECT_EQ(Ids(Find(Ask({{.path = "job.sh", .role = "script", .data = kScript},
                          {.path = "other.py", .role = "import", .data = "import os\n"}}))),
            Names{"without"});
}

TEST_F(IndexedHistoryTest, SimilarSourceComesBeforeTheSameName) {
  Put({.id = "near", .files = Script(With(kScript, "echo finished", "echo done"))});
  Put({.id = "far", .files = Script("#!/bin/sh\nfind /scratch -mtime +30 -delete\n")});
  CatchUp();
  Query query = Ask(Script());
  query.local_user = "mara";
  query.job_name = "train";
  const Found found = Find(query);
  EXPECT_EQ(found.basis, Basis::kSimilarBundle);
  EXPECT_EQ(Ids(found), Names{"near"});
  EXPECT_GT(found.similarity, 0.5);
  EXPECT_LT(found.similarity, 1);
  EXPECT_EQ(found.runs[0].similarity, found.similarity);
}

TEST_F(IndexedHistoryTest, TheSameUserAndNameOrOwnerAreTheLastResort) {
  Put({.id = "mine", .files = Script()});
  Put({.id = "theirs", .user = "tom"});
  Put({.id = "other-name", .name = "clean"});
  Put({.id = "owned",
       .user = "",
       .labels = {{"owner.kind", "CronJob"}, {"owner.namespace", "etl"}, {"owner.name", "load"}}});
  CatchUp();
  Query query = Ask(Script("#!/bin/sh\nsomething else entirely, of no relation\n"));
  EXPECT_EQ(Find(query).basis, Basis::kNone);
  query.local_user = "mara";
  query.job_name = "train";
  const Found named = Find(query);
  EXPECT_EQ(named.basis, Basis::kSameName);
  EXPECT_EQ(Ids(named), Names{"mine"});
  query.owner = OwnerName("CronJob", "etl", "load");
  EXPECT_EQ(Ids(Find(query)), Names{"owned"}) << "an owner says more than a name";
  query.owner = OwnerName("CronJob", "etl", "unload");
  EXPECT_EQ(Ids(Find(query)), Names{"mine"});
}

TEST_F(IndexedHistoryTest, NeverAnotherOrganisationsRuns) {
  for (const char* org : {"org", "org2"}) {
    const std::string compute = std::string("c-") + org;
    Put({.id = std::string("exact-") + org,
         .organisation = org,
         .compute = compute,
         .files = Script()});
    Put({.id = std::string("near-") + org,
         .organisation = org,
         .compute = compute,
         .files = Script(With(kScript, "echo finished", "echo done"))});
    Put({.id = std::string("whole-") + org,
         .organisation = org,
         .compute = compute,
         .files = ScriptAndTrain()});
  }
  CatchUp();
  const std::vector<TestFile> asked[] = {Script(),
                                         ScriptAndTrain(),
                                         Script(With(kScript, "echo finished", "echo over")),
                                         {{.path = "t.py", .role = "script", .data = kTrain}},
                                         Script("nothing like it\n")};
  int with_runs = 0;
  for (const auto& files : asked) {
    for (const std::string org : {"org", "org2", "org3"}) {
      Query query = Ask(files);
      query.organisation_id = org;
      query.local_user = "mara";
      query.job_name = "train";
      for (const char* compute : {"", "c-org", "c-org2"}) {
        query.compute_id = compute;
        const Found found = Find(query);
        with_runs += found.runs.empty() ? 0 : 1;
        for (const std::string& id : Ids(found)) EXPECT_TRUE(id.ends_with("-" + org)) << id;
        EXPECT_TRUE(org != "org3" || found.runs.empty());
      }
    }
  }
  EXPECT_EQ(with_runs, 5 * 2 * 3);
}

TEST_F(IndexedHistoryTest, OtherComputesAreAFallbackForThoseWhoMaySeeThem) {
  Put({.id = "here", .compute = "c1", .files = Script()});
  Put({.id = "there", .compute = "c2", .files = Script()});
  CatchUp();
  Query query = Ask(Script());
  EXPECT_EQ(Ids(Find(query)), (Names{"here", "there"})) << "no compute was asked for";
  query.compute_id = "c1";
  EXPECT_EQ(Ids(Find(query)), Names{"here"});
  EXPECT_FALSE(Find(query).elsewhere);
  query.compute_id = "c3";
  const Found elsewhere = Find(query);
  EXPECT_EQ(Ids(elsewhere), (Names{"here", "there"}));
  EXPECT_TRUE(elsewhere.elsewhere);
  EXPECT_EQ(elsewhere.notes.size(), 1U);
  query.visible_computes = std::vector<std::string>{"c2", "c3"};
  EXPECT_EQ(Ids(Find(query)), Names{"there"});
  query.compute_id = "c1";
  EXPECT_EQ(Ids(Find(query)), Names{"there"}) << "c1 may not be seen";
  query.visible_computes.emplace();
  EXPECT_TRUE(Find(query).runs.empty());
}

TEST_F(IndexedHistoryTest, WhatFollowsTheSourceWhereArgumentsDecide) {
  // Ten times the argument needs ten times the memory.
  for (const int n : {1, 1, 10, 10, 100, 100}) {
    Put({.id = "n" + std::to_string(n) + "-" + std::to_string(hour_),
         .command = {"/home/mara/job.sh --n " + std::to_string(n)},
         .memory_gib = 0.1 * n,
         .files = Script()});
  }
  CatchUp();
  Query query = Ask(Script());
  query.arguments = {"--n", "10"};
  Found found = Find(query);
  EXPECT_EQ(Ids(found), (Names{"n10-2", "n10-3"}));
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_NE(found.notes[0].find("spread of memory"), std::string::npos) << found.notes[0];
  query.arguments = {"--n", "1000"};
  found = Find(query);
  EXPECT_EQ(found.runs.size(), 6U) << "never seen: all, with what explains them";
  EXPECT_EQ(found.input_name, "number 1 of the arguments");
  EXPECT_EQ(found.input_size, 1000);
  EXPECT_EQ(found.runs.back().input_size, 100);
  EXPECT_EQ(found.notes.size(), 1U);
}

TEST_F(IndexedHistoryTest, ArgumentsThatExplainNothingDoNotSplitTheRuns) {
  for (int i = 0; i < 8; ++i) {
    Put({.id = "r" + std::to_string(i),
         .command = {"/home/mara/job.sh --tag " + std::string(i % 4 < 2 ? "a" : "b")},
         .memory_gib = i % 2 == 0 ? 2.0 : 8.0,
         .files = Script()});
  }
  CatchUp();
  Query query = Ask(Script());
  query.arguments = {"--tag", "c"};
  EXPECT_EQ(Find(query).runs.size(), 8U);
  query.arguments = {"--tag", "a"};
  EXPECT_EQ(Find(query).runs.size(), 4U) << "enough of the same";
}

TEST_F(IndexedHistoryTest, OneNumberInTheScriptIsTheSizeOfItsInput) {
  for (const int epochs : {1, 2, 4}) {
    Put({.id = "e" + std::to_string(epochs),
         .files = Script(With(kScript, "--lr", "--epochs " + std::to_string(epochs) + " --lr"))});
  }
  CatchUp();
  const Found found = Find(Ask(Script(With(kScript, "--lr", "--epochs 8 --lr"))));
  EXPECT_EQ(found.basis, Basis::kSimilarBundle);
  EXPECT_EQ(found.runs.size(), 3U);
  EXPECT_EQ(found.input_size, 8);
  EXPECT_EQ(found.runs.at(2).input_size, 4);
}

TEST_F(IndexedHistoryTest, TasksOfAnArrayTellTheirIndex) {
  for (int i = 1; i <= 3; ++i)
    Put({.id = "t" + std::to_string(i), .files = Script(), .native_id = "77_" + std::to_string(i)});
  CatchUp();
  const Found found = Find(Ask(Script()));
  EXPECT_EQ(found.input_name, "array index");
  EXPECT_EQ(found.input_size, std::nullopt);
  EXPECT_EQ(found.runs.at(2).input_size, 3);
}

TEST_F(IndexedHistoryTest, RunsThatSayNothingDoNotHideThoseThatDo) {
  Put({.id = "cancelled",
       .status = evidence::ExecutionStatus::kCancelled,
       .outcome = evidence::Outcome::kCancelled,
       .files = Script()});
  Put({.id = "near", .files = Script(With(kScript, "echo finished", "echo done"))});
  CatchUp();
  const Found found = Find(Ask(Script()));
  EXPECT_EQ(found.basis, Basis::kSimilarBundle);
  EXPECT_EQ(Ids(found), (Names{"cancelled", "near"}));
  Query alone = Ask(Script());
  alone.exclude_execution_id = "near";
  EXPECT_EQ(Ids(Find(alone)), Names{"cancelled"}) << "better than nothing";
  EXPECT_EQ(Find(alone).basis, Basis::kExactBundle);
}

TEST_F(IndexedHistoryTest, KeepsToTheNewestAndSaysSo) {
  for (int i = 0; i < 7; ++i) Put({.id = "r" + std::to_string(i), .files = Script()});
  CatchUp();
  Query query = Ask(Script());
  query.limit = 3;
  Found found = Find(query);
  EXPECT_EQ(Ids(found), (Names{"r4", "r5", "r6"}));
  EXPECT_TRUE(found.truncated);
  EXPECT_EQ(found.notes.size(), 1U);
  query.exclude_execution_id = "r5";
  EXPECT_EQ(Ids(Find(query)), (Names{"r3", "r4", "r6"}));
  EXPECT_TRUE(Find(query).truncated);
  query.limit = 6;
  EXPECT_FALSE(Find(query).truncated);
  query.exclude_execution_id.clear();
  query.limit = 7;
  EXPECT_FALSE(Find(query).truncated);
}

TEST_F(IndexedHistoryTest, AFileWithASecretIsFoundByTheBytesItHad) {
  const std::string secret = "#!/bin/bash\nexport TOKEN=abcdef\npython serve.py\n";
  const std::string stored = "#!/bin/bash\nexport TOKEN=[redacted]\npython serve.py\n";
  Put({.id = "r",
       .files = {{.path = "j.sh", .role = "script", .data = stored, .before_redaction = secret}}});
  CatchUp();
  const Found found = Find(Ask({{.path = "j.sh", .role = "script", .data = secret}}));
  EXPECT_EQ(found.basis, Basis::kExactBundle);
  EXPECT_EQ(found.runs.size(), 1U);
}

TEST_F(IndexedHistoryTest, TheVersionChangesWithTheAnswer) {
  Put({.id = "r1", .files = Script()});
  Put({.id = "other", .name = "x", .files = Script("#!/bin/sh\nunrelated work of another kind\n")});
  CatchUp();
  const std::string first = Find(Ask(Script())).version;
  EXPECT_EQ(Find(Ask(Script())).version, first);
  Put({.id = "other2",
       .name = "x",
       .files = Script("#!/bin/sh\nunrelated work of another kind\n")});
  CatchUp();
  EXPECT_EQ(Find(Ask(Script())).version, first) << "not by what is no part of it";
  evidence::Execution more;
  more.used.memory_peak_bytes = 9ULL << 30;
  more.used.memory_peak_basis = "cgroup_peak";
  Put({.id = "r1"}, more);
  CatchUp();
  const std::string second = Find(Ask(Script())).version;
  EXPECT_NE(second, first);
  Put({.id = "r2", .files = Script()});
  CatchUp();
  EXPECT_NE(Find(Ask(Script())).version, second);
}

TEST_F(IndexedHistoryTest, TheSameAnswersAfterARestart) {
  for (int i = 0; i < 5; ++i) Put({.id = "r" + std::to_string(i), .files = ScriptAndTrain()});
  Put({.id = "near", .files = Script(With(kScript, "echo finished", "echo done"))});
  CatchUp();
  const std::vector<TestFile> similar = Script(With(kScript, "echo finished", "echo over"));
  const Found exact = Find(Ask(ScriptAndTrain()));
  const Found near = Find(Ask(similar));
  ASSERT_EQ(near.basis, Basis::kSimilarBundle);
  Open();
  EXPECT_EQ(Find(Ask(ScriptAndTrain())).version, exact.version);
  EXPECT_EQ(Find(Ask(similar)).version, near.version);
  history_.reset();
  ASSERT_TRUE(base::RemoveFile(base::JoinPath(dir_->path(), "history.db")));
  Open();
  EXPECT_TRUE(Find(Ask(similar)).runs.empty());
  CatchUp();
  EXPECT_EQ(Find(Ask(ScriptAndTrain())).version, exact.version) << "made again";
  EXPECT_EQ(Find(Ask(similar)).version, near.version);
}

TEST_F(IndexedHistoryTest, ManyReadersWhileItFollows) {
  history_->Start();
  std::atomic<int> failures{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const auto found = history_->Find(Ask(Script()));
        if (!found || found->runs.size() != found->origins.size()) ++failures;
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    Put({.id = "r" + std::to_string(i),
         .files =
             i % 2 == 0 ? Script() : Script(With(kScript, "finished", "n" + std::to_string(i)))});
    history_->Notify();
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (history_->Size()->runs < 30 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  done = true;
  for (std::thread& reader : readers) reader.join();
  history_->Stop();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(history_->Size()->runs, 30U);
  EXPECT_EQ(Find(Ask(Script())).runs.size(), 15U);
}

}  // namespace
}  // namespace expanse::intelligence::history
