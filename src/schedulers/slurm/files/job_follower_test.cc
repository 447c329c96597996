#include "schedulers/slurm/files/job_follower.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using Notes = std::vector<std::string>;

evidence::ExecutionKey KeyOf(const std::string& id) {
  return {evidence::SourceType::kSlurm, "lab/" + id};
}

class JobFollowerTest : public testing::Test {
 protected:
  JobFollowerTest() {
    options_.user = [this](uid_t uid) -> base::Result<collect::UserIdentity> {
      ++look_ups_;
      if (uid == kStranger) return base::Fail(base::Code::kNotFound, "user.unknown", "who?");
      return collect::UserIdentity{.uid = ::geteuid(), .gid = ::getegid(), .groups = {}};
    };
  }
  // Made at the first use, so that a test can set options before.
  JobFollower& follower() {
    if (!follower_) {
      follower_.emplace(options_, clock_, results_, monitor_,
                        [this] { return base::Duration(cpu_ += cpu_per_call_); });
    }
    return *follower_;
  }
  JobFilesRequest Job(const std::string& id) {
    JobFilesRequest request;
    request.key = KeyOf(id);
    request.uid = ::geteuid();
    request.stdout_path = Path(id + ".out");
    request.stderr_path = Path(id + ".err");
    request.working_directory = dir_.path();
    return request;
  }
  std::string Path(const std::string& name) const { return base::JoinPath(dir_.path(), name); }
  void Write(const std::string& name, std::string_view data) {
    ASSERT_TRUE(base::RemoveFile(Path(name)));
    Append(name, data);
  }
  void Append(const std::string& name, std::string_view data) {
    base::UniqueFd fd(::open(Path(name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    ASSERT_TRUE(base::WriteFd(fd.get(), data));
  }
  void Step(base::Duration after = 0s) {
    clock_.Advance(after);
    while (follower().Step({})) {
    }
    for (auto& payload : results_.Take(1000)) Sort(std::move(payload));
  }
  void Sort(evidence::Payload payload) {
    if (auto* tail = std::get_if<evidence::LogTail>(&payload)) tails_.push_back(std::move(*tail));
    if (auto* bundle = std::get_if<evidence::SourceBundle>(&payload))
      bundles_.push_back(std::move(*bundle));
    if (auto* seen = std::get_if<evidence::ExecutionObservation>(&payload))
      seen_.push_back(std::move(*seen));
  }
  // stream:data of the tails since the last call.
  Notes Tails() {
    Notes out;
    for (const auto& tail : tails_) out.push_back(tail.stream + ":" + tail.data);
    tails_.clear();
    return out;
  }
  Notes LastNotes() const { return seen_.empty() ? Notes{} : seen_.back().execution.capture_notes; }

  static constexpr uid_t kStranger = 77'777;
  base::TempDir dir_ = base::TempDir::Create("jobs").value();
  base::FakeClock clock_;
  JobFilesOptions options_;
  ResultQueue results_{16U << 20};
  FilesMonitor monitor_;
  base::Duration cpu_{};
  base::Duration cpu_per_call_{};
  int look_ups_ = 0;
  std::optional<JobFollower> follower_;
  std::vector<evidence::LogTail> tails_;
  std::vector<evidence::SourceBundle> bundles_;
  std::vector<evidence::ExecutionObservation> seen_;
};

TEST_F(JobFollowerTest, LooksWhileItRunsAndOnceMoreAtTheEnd) {
  Write("1.out", "starting\n");
  follower().Follow(Job("1"), nullptr);
  Step();
  EXPECT_EQ(Tails(), Notes{});
  Write("1.err", "warning: x\n");
  Step(10s);
  EXPECT_EQ(Tails(), (Notes{"stdout:starting\n", "stderr:warning: x\n"}));
  Append("1.out", "working\nhalf a li");
  Step(29s);
  EXPECT_EQ(Tails(), Notes{});
  Step(2s);
  EXPECT_EQ(Tails(), Notes{"stdout:starting\nworking\n"});
  follower().End("lab/1");
  Append("1.out", "ne\nend");
  Step(1s);
  EXPECT_EQ(Tails(), Notes{});
  Step(1s);
  EXPECT_EQ(Tails(), Notes{"stdout:starting\nworking\nhalf a line\nend"});
  EXPECT_EQ(follower().jobs(), 0U);
  EXPECT_EQ(LastNotes(), Notes{});
}

TEST_F(JobFollowerTest, TakesTheTailOfAJobOfWhichOnlyTheEndWasSeen) {
  Write("2.out", "all of it\n");
  JobFilesRequest job = Job("2");
  job.stderr_path = job.stdout_path;
  job.ended = true;
  follower().Follow(job, nullptr);
  Step(2s);
  EXPECT_EQ(Tails(), Notes{"combined:all of it\n"});
  EXPECT_EQ(follower().jobs(), 0U);
}

TEST_F(JobFollowerTest, LooksGetRarer) {
  Write("3.out", "0\n");
  follower().Follow(Job("3"), nullptr);
  std::vector<int> at;
  for (int second = 0; second < 2000; ++second) {
    Append("3.out", "x\n");
    Step(1s);
    if (!Tails().empty()) at.push_back(second);
  }
  ASSERT_GE(at.size(), 6U);
  EXPECT_LE(at.size(), 10U);
  EXPECT_LE(at[0], 11);
  for (std::size_t i = 2; i < at.size(); ++i) {
    EXPECT_GE(at[i] - at[i - 1], at[i - 1] - at[i - 2]);
    EXPECT_LE(at[i] - at[i - 1], 301);
  }
}

TEST_F(JobFollowerTest, SaysWhatItCannotRead) {
  JobFilesRequest job = Job("4");
  ASSERT_EQ(::mkfifo(job.stdout_path.c_str(), 0600), 0);
  follower().Follow(job, nullptr);
  for (int i = 0; i < 2; ++i) Step(60s);
  EXPECT_TRUE(seen_.empty());  // may come yet
  for (int i = 0; i < 3; ++i) Step(300s);
  EXPECT_EQ(LastNotes(), Notes{"stdout: not a regular file"});
  Step(1h);
  EXPECT_EQ(seen_.size(), 1U);
  follower().End("lab/4");
  Step(2s);
  Step(2s);
  EXPECT_EQ(follower().jobs(), 1U);
  Step(65s);
  EXPECT_EQ(follower().jobs(), 0U);
  EXPECT_EQ(LastNotes(), (Notes{"stdout: not a regular file", "stderr: not found here"}));
  EXPECT_EQ(monitor_.figures().troubles, 2U);
}

TEST_F(JobFollowerTest, WaitsForAFileThatTheFileServerStillHides) {
  JobFilesRequest job = Job("5");
  job.stderr_path.clear();
  job.ended = true;
  follower().Follow(job, nullptr);
  Step(2s);
  Step(2s);
  Write("5.out", "there after all\n");
  Step(65s);
  EXPECT_EQ(Tails(), Notes{"stdout:there after all\n"});
  EXPECT_EQ(LastNotes(), Notes{});
  EXPECT_EQ(follower().jobs(), 0U);
}

TEST_F(JobFollowerTest, NoticesTruncationAndRemoval) {
  Write("6.out", "first\nlife\n");
  follower().Follow(Job("6"), nullptr);
  Step();
  Step(10s);
  Write("6.out", "new\n");
  Step(30s);
  EXPECT_EQ(Tails().back(), "stdout:new\n");
  EXPECT_EQ(LastNotes(), Notes{"stdout: truncated or replaced while the job ran"});
  ASSERT_TRUE(base::RemoveFile(Path("6.out")));
  follower().End("lab/6");
  for (int i = 0; i < 3; ++i) Step(65s);
  EXPECT_EQ(LastNotes(), (Notes{"stdout: removed or renamed since", "stderr: not found here"}));
}

TEST_F(JobFollowerTest, LeavesOutWhatWasInTheFileBefore) {
  Write("7.out", "of an earlier run\n");
  JobFilesRequest job = Job("7");
  job.started = base::WallTime(std::chrono::seconds(::time(nullptr) + 1000));
  follower().Follow(job, nullptr);
  Step();
  Append("7.out", "of this run\n");
  follower().End("lab/7");
  Step(2s);
  EXPECT_EQ(Tails(), Notes{"stdout:of this run\n"});
}

TEST_F(JobFollowerTest, TakesTheScriptWhenItComes) {
  Write("train.py", "print(1)\n");
  JobFilesRequest job = Job("8");
  job.command = Path("job.sh") + " arg";
  job.script_pending = true;
  follower().Follow(job, nullptr);
  Step();
  EXPECT_TRUE(bundles_.empty());
  job.script_pending = false;
  follower().Follow(job, std::make_shared<const std::string>("#!/bin/sh\npython train.py\n"));
  Step();
  ASSERT_EQ(bundles_.size(), 1U);
  EXPECT_EQ(bundles_[0].key, job.key);
  ASSERT_EQ(bundles_[0].files.size(), 2U);
  EXPECT_EQ(bundles_[0].files[0].data, "#!/bin/sh\npython train.py\n");
  EXPECT_EQ(bundles_[0].files[1].path, Path("train.py"));
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].execution.bundle_hash, evidence::BundleHash(bundles_[0]));
  EXPECT_EQ(seen_[0].execution.source_type, evidence::SourceType::kSlurm);
  Step(1h);
  EXPECT_EQ(bundles_.size(), 1U);
}

TEST_F(JobFollowerTest, DoesWithoutAScriptThatNeverComes) {
  Write("job.sh", "#!/bin/sh\ntrue\n");
  JobFilesRequest job = Job("9");
  job.command = Path("job.sh");
  job.script_pending = true;
  follower().Follow(job, nullptr);
  Step(60s);
  EXPECT_TRUE(bundles_.empty());
  follower().End("lab/9");
  Step(2s);
  ASSERT_EQ(bundles_.size(), 1U);
  EXPECT_EQ(bundles_[0].files[0].role, "script");
}

TEST_F(JobFollowerTest, ReadsTheSourcesOfAnArrayOnce) {
  Write("train.py", "print(1)\n");
  const auto script = std::make_shared<const std::string>("python train.py\n");
  for (int i = 0; i < 100; ++i) {
    JobFilesRequest job = Job("10_" + std::to_string(i));
    follower().Follow(job, script);
    Step();
    Write("train.py", "print(2)\n");  // would be seen if it were read again
  }
  ASSERT_EQ(bundles_.size(), 100U);
  for (const auto& bundle : bundles_) {
    EXPECT_EQ(bundle.files[1].data, "print(1)\n");
    EXPECT_EQ(bundle.key, KeyOf("10_" + std::to_string(&bundle - bundles_.data())));
  }
  // Not for ever: sources change.
  clock_.Advance(11min);
  follower().Follow(Job("11"), script);
  Step();
  EXPECT_EQ(bundles_.back().files[1].data, "print(2)\n");
}

TEST_F(JobFollowerTest, GivesALargeSharedBundleOnce) {
  const auto script = std::make_shared<const std::string>("#!/bin/sh\n" + std::string(50'000, '#'));
  follower().Follow(Job("12_1"), script);
  follower().Follow(Job("12_2"), script);
  Step();
  ASSERT_EQ(bundles_.size(), 1U);
  ASSERT_EQ(seen_.size(), 2U);
  EXPECT_EQ(seen_[0].execution.bundle_hash, seen_[1].execution.bundle_hash);
  const bool first = seen_[0].key == bundles_[0].key;
  EXPECT_EQ(seen_[first ? 1 : 0].execution.capture_notes,
            Notes{"sources: the same as those of " + bundles_[0].key.identity});
}

// The controller gives the text; when a sampler goes before that is looked at, the job comes again
// with the text's hash.
TEST_F(JobFollowerTest, AHashThatComesLaterDoesNotReplaceTheText) {
  JobFilesRequest job = Job("12b");
  job.command = "/gone/job.sh";
  follower().Follow(job, std::make_shared<const std::string>("#!/bin/sh\n"));
  job.sources_taken = true;
  job.script_sha256 = base::Sha256Hex("#!/bin/sh\n");
  follower().Follow(job, nullptr);
  Step();
  EXPECT_EQ(bundles_.size(), 1U);
}

TEST_F(JobFollowerTest, TakesNoSourcesASecondTime) {
  JobFilesRequest job = Job("13");
  job.command = "/bin/true";
  job.sources_taken = true;
  follower().Follow(job, std::make_shared<const std::string>("#!/bin/sh\n"));
  Step();
  EXPECT_TRUE(bundles_.empty());
}

TEST_F(JobFollowerTest, ReadsNothingOfWhatIsOff) {
  Write("14.out", "private\n");
  JobFilesRequest job = Job("14");
  job.comment = "expanse=off";
  follower().Follow(job, std::make_shared<const std::string>("#!/bin/sh\n"));
  Step();
  EXPECT_EQ(LastNotes(), (Notes{"logs: off for this job", "sources: off for this job"}));
  Step(60s);
  follower().End("lab/14");
  Step(60s);
  EXPECT_TRUE(tails_.empty());
  EXPECT_TRUE(bundles_.empty());
  EXPECT_EQ(look_ups_, 0);
  EXPECT_EQ(follower().jobs(), 0U);
  EXPECT_EQ(seen_.size(), 1U);
}

TEST_F(JobFollowerTest, AJobCanBeTurnedOffWhileItRuns) {
  Write("15.out", "open\n");
  JobFilesRequest job = Job("15");
  follower().Follow(job, nullptr);
  Step();
  Step(10s);
  EXPECT_EQ(Tails(), Notes{"stdout:open\n"});
  job.comment = "expanse=nologs";
  follower().Follow(job, nullptr);
  Append("15.out", "private\n");
  Step(300s);
  follower().End("lab/15");
  Step(300s);
  EXPECT_EQ(Tails(), Notes{});
  EXPECT_EQ(LastNotes(), Notes{"logs: off for this job"});
}

TEST_F(JobFollowerTest, PathsMayComeLater) {
  Write("16.out", "text\n");
  JobFilesRequest job = Job("16");
  job.stdout_path.clear();
  job.stderr_path.clear();
  follower().Follow(job, nullptr);
  Step(60s);
  follower().Follow(Job("16"), nullptr);
  Step();
  Step(10s);
  EXPECT_EQ(Tails(), Notes{"stdout:text\n"});
}

TEST_F(JobFollowerTest, DevNullIsNoFile) {
  JobFilesRequest job = Job("17");
  job.stdout_path = job.stderr_path = "/dev/null";
  follower().Follow(job, nullptr);
  follower().End("lab/17");
  for (int i = 0; i < 3; ++i) Step(65s);
  EXPECT_EQ(LastNotes(), Notes{});
  EXPECT_EQ(follower().jobs(), 0U);
}

TEST_F(JobFollowerTest, RefusesUsersThatNobodyKnows) {
  Write("18.out", "text\n");
  JobFilesRequest job = Job("18");
  job.uid = kStranger;
  job.ended = true;
  follower().Follow(job, std::make_shared<const std::string>("#!/bin/sh\n"));
  Step(2s);
  EXPECT_EQ(Tails(), Notes{});
  EXPECT_TRUE(bundles_.empty());
  EXPECT_EQ(LastNotes(), (Notes{"sources: the job's user is not known here",
                                "stdout: the job's user is not known here",
                                "stderr: the job's user is not known here"}));
}

TEST_F(JobFollowerTest, AsksForAUserOnceInAWhile) {
  for (int i = 0; i < 50; ++i) follower().Follow(Job("19_" + std::to_string(i)), nullptr);
  Step();
  Step(10s);
  EXPECT_EQ(look_ups_, 1);
  Step(11min);
  EXPECT_EQ(look_ups_, 2);
}

TEST_F(JobFollowerTest, SpendsNoMoreThanItsShareOnRunningJobs) {
  options_.cpu_share = 0.002;
  cpu_per_call_ = 1ms;  // each look costs that
  for (int i = 0; i < 1000; ++i) {
    const std::string id = "20_" + std::to_string(i);
    follower().Follow(Job(id), nullptr);
  }
  Step();  // all begin at once, whatever it costs
  EXPECT_EQ(monitor_.figures().looks, 1000U);
  for (int i = 0; i < 600; ++i) Step(1s);
  const double used = monitor_.figures().cpu_s - 1.0;
  EXPECT_LE(used, 0.002 * 610 + 0.001);
  EXPECT_GE(used, 0.002 * 590);
  EXPECT_GT(monitor_.figures().overdue_s, 0);
  // Ends are looked at all the same.
  Write("20_7.out", "the end\n");
  follower().End("lab/20_7");
  Step(2s);
  EXPECT_EQ(Tails(), Notes{"stdout:the end\n"});
}

TEST_F(JobFollowerTest, WritesNoMoreTailsThanItMay) {
  options_.result_bytes_per_second = 10'000;
  for (int i = 0; i < 100; ++i) {
    const std::string id = "21_" + std::to_string(i);
    Write(id + ".out", std::string(20'000, 'x') + "\n");
    follower().Follow(Job(id), nullptr);
  }
  Step();
  for (int i = 0; i < 60; ++i) Step(1s);
  EXPECT_GE(tails_.size(), 30U);
  EXPECT_LE(tails_.size(), 37U);
}

TEST_F(JobFollowerTest, LooksAtNothingWhileResultsAreNotTaken) {
  for (int i = 0; i < 20; ++i) {
    const std::string id = "22_" + std::to_string(i);
    Write(id + ".out", base::HexEncode(std::string(20'000, 'x')) + "\n");
    follower().Follow(Job(id), nullptr);
    follower().End("lab/" + id);
  }
  ResultQueue small(100'000);
  JobFollower other(options_, clock_, small, monitor_);
  for (int i = 0; i < 20; ++i) {
    JobFilesRequest job = Job("22_" + std::to_string(i));
    job.ended = true;
    other.Follow(job, nullptr);
  }
  clock_.Advance(2s);
  EXPECT_FALSE(other.Step({}));
  EXPECT_LE(small.size(), 3U);
  std::size_t taken = 0;
  for (int i = 0; i < 40; ++i) {
    taken += small.Take(100).size();
    clock_.Advance(65s);
    (void)other.Step({});
  }
  EXPECT_GE(taken, 20U);  // nothing was lost
  EXPECT_EQ(other.jobs(), 0U);
}

TEST_F(JobFollowerTest, ForgetsWhatItIsToldTo) {
  Write("23.out", "text\n");
  follower().Follow(Job("23"), nullptr);
  follower().Forget("lab/23");
  follower().Forget("lab/23");
  follower().End("lab/23");
  Step(60s);
  EXPECT_EQ(Tails(), Notes{});
  EXPECT_EQ(follower().jobs(), 0U);
}

TEST_F(JobFollowerTest, StopsAtOnce) {
  Write("24.out", "text\n");
  follower().Follow(Job("24"), nullptr);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(follower().Step(stop.get_token()));
  EXPECT_EQ(monitor_.figures().looks, 0U);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
