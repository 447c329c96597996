#include "schedulers/slurm/files/assignment_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/files.h"
#include "schedulers/slurm/files/job_follower.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;
using Notes = std::vector<std::string>;

class AssignmentReaderTest : public testing::Test {
 protected:
  AssignmentReaderTest() {
    options_.user = [](uid_t uid) -> base::Result<collect::UserIdentity> {
      // Whoever it is, it is us: nothing here needs another user.
      (void)uid;
      return collect::UserIdentity{.uid = ::geteuid(), .gid = ::getegid(), .groups = {}};
    };
    reading_ = {.directory = Path("assign"),
                .spool = Path("spool"),
                .host = "cn07",
                .interval = 5s,
                .user_of_job = [this](std::uint32_t id) -> std::optional<uid_t> {
                  const auto found = users_.find(id);
                  if (found == users_.end()) return std::nullopt;
                  return found->second;
                }};
    follower_.emplace(options_, clock_, results_, monitor_);
    reader_.emplace(reading_);
  }
  void SetUp() override {
    ASSERT_EQ(::mkdir(Path("assign").c_str(), 0700), 0);
    ASSERT_EQ(::mkdir(Path("spool").c_str(), 0755), 0);
  }
  std::string Path(const std::string& name) const { return base::JoinPath(dir_.path(), name); }
  void Write(const std::string& name, std::string_view data, mode_t mode = 0600) {
    ASSERT_TRUE(base::WriteFileAtomically(Path(name), data, mode));
    ASSERT_EQ(::chmod(Path(name).c_str(), mode), 0);
  }
  void Assign(const std::vector<Assignment>& jobs) {
    Write("assign/cn07", EncodeAssignments("cn07", jobs));
  }
  Assignment Job(std::uint32_t id) {
    return {.job_id = id, .uid = 1001, .stdout_path = Path(std::to_string(id) + ".out")};
  }
  std::string Poll() {
    reader_->Poll(clock_.Mono(), *follower_);
    return reader_->last() ? "" : reader_->last().error().reason;
  }
  // stream:data of all tails and the notes since the last call.
  Notes Step(base::Duration after) {
    clock_.Advance(after);
    (void)Poll();
    while (follower_->Step({})) {
    }
    Notes out;
    for (auto& payload : results_.Take(100)) {
      if (const auto* tail = std::get_if<evidence::LogTail>(&payload))
        out.push_back(tail->key.identity + " " + tail->stream + ":" + tail->data);
      if (const auto* bundle = std::get_if<evidence::SourceBundle>(&payload))
        for (const auto& file : bundle->files) out.push_back(file.role + ":" + file.data);
      if (const auto* seen = std::get_if<evidence::ExecutionObservation>(&payload))
        for (const auto& note : seen->execution.capture_notes) out.push_back("note:" + note);
    }
    return out;
  }

  base::TempDir dir_ = base::TempDir::Create("assign").value();
  base::FakeClock clock_;
  JobFilesOptions options_;
  ResultQueue results_{16U << 20};
  FilesMonitor monitor_;
  std::optional<JobFollower> follower_;
  AssignmentReaderOptions reading_;
  std::map<std::uint32_t, uid_t> users_;
  std::optional<AssignmentReader> reader_;
};

TEST_F(AssignmentReaderTest, FollowsWhatIsAssignedUntilItsEnd) {
  Write("5.out", "running\n");
  Assign({Job(5)});
  EXPECT_EQ(Step(1s), Notes{});
  EXPECT_EQ(Step(10s), Notes{"job:5 stdout:running\n"});
  Write("5.out", "running\nended\n");
  Assignment ended = Job(5);
  ended.ended = true;
  Assign({ended});
  EXPECT_EQ(Step(5s), Notes{});  // settles
  EXPECT_EQ(Step(2s).front(), "job:5 stdout:running\nended\n");
  EXPECT_EQ(follower_->jobs(), 0U);
  // It stays in the file for a while and is not taken up again.
  Assign({ended, Job(6)});
  (void)Step(10s);
  EXPECT_EQ(follower_->jobs(), 1U);
  Assign({Job(6)});
  (void)Step(10s);
  EXPECT_EQ(follower_->jobs(), 1U);
}

TEST_F(AssignmentReaderTest, LooksOnceAtWhatHasEndedAlready) {
  Write("5.out", "all\n");
  Assignment ended = Job(5);
  ended.ended = true;
  Assign({ended});
  (void)Step(1s);
  EXPECT_EQ(Step(2s), Notes{"job:5 stdout:all\n"});
}

TEST_F(AssignmentReaderTest, ForgetsWhatIsNoLongerAssigned) {
  Assign({Job(5), Job(6)});
  (void)Step(1s);
  EXPECT_EQ(follower_->jobs(), 2U);
  Assign({Job(6)});
  (void)Step(5s);
  EXPECT_EQ(follower_->jobs(), 1U);
  ASSERT_TRUE(base::RemoveFile(Path("assign/cn07")));
  (void)Step(5s);
  EXPECT_EQ(follower_->jobs(), 0U);
  EXPECT_TRUE(reader_->last());
  // The controller is back with the same file.
  Assign({Job(6)});
  (void)Step(5s);
  EXPECT_EQ(follower_->jobs(), 1U);
}

TEST_F(AssignmentReaderTest, KeepsWhatItHasWhenTheFileIsTorn) {
  Assign({Job(5)});
  (void)Step(1s);
  Write("assign/cn07", "expanse-assign 1\nhost cn07\n");
  (void)Step(5s);
  EXPECT_EQ(reader_->last().error().reason, "assign.torn");
  EXPECT_EQ(follower_->jobs(), 1U);
  Assign({Job(5), Job(6)});
  (void)Step(5s);
  EXPECT_TRUE(reader_->last());
  EXPECT_EQ(follower_->jobs(), 2U);
}

TEST_F(AssignmentReaderTest, BelievesOnlyTheControllersUser) {
  Assign({Job(5)});
  ASSERT_EQ(::chmod(Path("assign/cn07").c_str(), 0620), 0);
  EXPECT_EQ(Poll(), "assign.untrusted");
  ASSERT_EQ(::chmod(Path("assign/cn07").c_str(), 0600), 0);
  ASSERT_EQ(::chmod(Path("assign").c_str(), 0702), 0);
  clock_.Advance(5s);
  EXPECT_EQ(Poll(), "assign.untrusted");
  ASSERT_EQ(::chmod(Path("assign").c_str(), 0700), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(Path("assign/cn07").c_str(), 61'002, 61'002), 0);
    clock_.Advance(5s);
    EXPECT_EQ(Poll(), "assign.untrusted");
  }
  EXPECT_EQ(follower_->jobs(), 0U);
  ASSERT_TRUE(base::RemoveFile(Path("assign/cn07")));
  ASSERT_EQ(::symlink(Path("elsewhere").c_str(), Path("assign/cn07").c_str()), 0);
  Write("elsewhere", EncodeAssignments("cn07", {Job(5)}));
  clock_.Advance(5s);
  EXPECT_EQ(Poll(), "files.link");
  EXPECT_EQ(follower_->jobs(), 0U);
}

TEST_F(AssignmentReaderTest, ReadsAsTheOwnerOfTheSpool) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to take another user's rights";
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  Assign({Job(5)});
  for (const char* name : {"spool", "assign", "assign/cn07"})
    ASSERT_EQ(::chown(Path(name).c_str(), 61'001, 61'001), 0);
  EXPECT_EQ(Poll(), "");
  EXPECT_EQ(follower_->jobs(), 1U);
  EXPECT_EQ(::access(Path("spool").c_str(), W_OK), 0);  // root again
}

TEST_F(AssignmentReaderTest, RefusesAJobOfAnotherUserThanTheHostKnows) {
  users_ = {{5, 1001}, {6, 1002}};
  Assign({Job(5), Job(6), Job(7)});
  (void)Step(1s);
  EXPECT_EQ(follower_->jobs(), 2U);
  EXPECT_EQ(reader_->refused(), 1U);
}

TEST_F(AssignmentReaderTest, TakesSourcesOnlyOfTheScriptThatWasSubmitted) {
  const std::string script = "#!/bin/sh\npython train.py\n";
  Write("job.sh", script);
  Write("train.py", "print(1)\n");
  Assignment job{.job_id = 5,
                 .uid = 1001,
                 .working_directory = dir_.path(),
                 .command = "job.sh --fast",
                 .script_sha256 = base::Sha256Hex(script)};
  Assign({job});
  EXPECT_EQ(Step(1s), (Notes{"script:" + script, "import:print(1)\n"}));
  job.job_id = 6;
  job.script_sha256 = base::Sha256Hex("#!/bin/sh\nas it was\n");
  Assign({job});
  EXPECT_EQ(Step(5s), Notes{"note:sources: the script's file is not what was submitted"});
  // The controller has the script itself.
  Write("job.sh", "#!/bin/sh\ntrue\n");
  job.job_id = 7;
  job.script_sha256 = base::Sha256Hex("#!/bin/sh\ntrue\n");
  Assign({job});
  EXPECT_EQ(Step(5s), Notes{});
}

}  // namespace
}  // namespace expanse::schedulers::slurm
