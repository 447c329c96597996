#include "schedulers/slurm/files/assignment_board.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

class AssignmentBoardTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return base::JoinPath(directory_, name); }
  static Assignment Job(std::uint32_t id) { return {.job_id = id, .uid = 7}; }
  std::unique_ptr<AssignmentBoard> Start() {
    return AssignmentBoard::Start({.directory = directory_, .interval = 2s, .forget_after = 2min},
                                  clock_)
        .value();
  }
  // Time goes on until `done`; the thread writes whenever the clock moves.
  template <typename Done>
  bool Await(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < deadline) {
      if (done()) return true;
      clock_.Advance(1s);
      std::this_thread::yield();
    }
    return false;
  }
  std::vector<std::uint32_t> Jobs(const std::string& host) const {
    std::vector<std::uint32_t> ids;
    const auto text = base::ReadFile(Path(host));
    if (!text) return ids;
    for (const auto& job : ParseAssignments(*text, host).value_or(std::vector<Assignment>{}))
      ids.push_back(job.job_id);
    return ids;
  }
  using Ids = std::vector<std::uint32_t>;

  base::TempDir dir_ = base::TempDir::Create("board").value();
  std::string directory_ = base::JoinPath(dir_.path(), "prefix/assign");
  base::FakeClock clock_;
};

TEST_F(AssignmentBoardTest, WritesWhatIsSetForEachHost) {
  auto board = Start();
  EXPECT_TRUE(board->Set("a", Job(2)));
  EXPECT_TRUE(board->Set("a", Job(1)));
  EXPECT_TRUE(board->Set("b", Job(3)));
  EXPECT_TRUE(Await([&] { return Jobs("a") == Ids{1, 2} && Jobs("b") == Ids{3}; }));
  struct stat info{};
  ASSERT_EQ(::stat(Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(directory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  board->Remove("a", 1);
  board->Remove("b", 3);
  board->Remove("c", 9);
  EXPECT_TRUE(Await([&] { return Jobs("a") == Ids{2} && !base::Exists(Path("b")); }));
  EXPECT_TRUE(Await([&] { return board->health().status == evidence::HealthStatus::kOk; }));
  EXPECT_EQ(board->health().figures.at("jobs"), 1);
}

TEST_F(AssignmentBoardTest, RemovesWhatAnEarlierDaemonLeft) {
  ASSERT_TRUE(base::MakeDirectories(directory_, 0700));
  ASSERT_TRUE(base::WriteFileAtomically(Path("old"), EncodeAssignments("old", {Job(1)}), 0600));
  auto board = Start();
  EXPECT_TRUE(board->Set("a", Job(2)));
  EXPECT_TRUE(Await([&] { return Jobs("a") == Ids{2}; }));
  EXPECT_TRUE(Await([&] { return !base::Exists(Path("old")); }));
  EXPECT_EQ(Jobs("a"), Ids{2});
}

TEST_F(AssignmentBoardTest, TakesNoHostThatIsNoFileName) {
  auto board = Start();
  for (const char* host : {"", ".", "..", ".hidden", "a/b", "../x", "a b", "a\n"})
    EXPECT_FALSE(board->Set(host, Job(1))) << host;
  EXPECT_FALSE(board->Set("a", {.job_id = 1, .uid = 0}));
  EXPECT_FALSE(board->Set("a", {.job_id = 0, .uid = 1}));
  for (std::uint32_t id = 1; id <= kMaxAssignments; ++id) ASSERT_TRUE(board->Set("a", Job(id)));
  EXPECT_FALSE(board->Set("a", Job(kMaxAssignments + 1)));
  EXPECT_TRUE(board->Set("a", Job(1)));
}

TEST_F(AssignmentBoardTest, SaysWhyItCannotWriteAndGoesOn) {
  ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(dir_.path(), "prefix"), "a file\n", 0600));
  auto board = Start();
  EXPECT_TRUE(board->Set("a", Job(1)));
  EXPECT_TRUE(Await([&] { return board->health().status == evidence::HealthStatus::kDegraded; }));
  ASSERT_TRUE(base::RemoveFile(base::JoinPath(dir_.path(), "prefix")));
  EXPECT_TRUE(Await([&] { return Jobs("a") == Ids{1}; }));
  EXPECT_TRUE(Await([&] { return board->health().status == evidence::HealthStatus::kOk; }));
}

TEST_F(AssignmentBoardTest, WritesNothingWhereOthersCouldWrite) {
  ASSERT_TRUE(base::MakeDirectories(directory_, 0700));
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  auto board = Start();
  EXPECT_TRUE(board->Set("a", Job(1)));
  EXPECT_TRUE(Await([&] { return board->health().reason == "assign.untrusted"; }));
  EXPECT_FALSE(base::Exists(Path("a")));
}

TEST(AssignmentBoard, WantsAnAbsoluteDirectory) {
  base::FakeClock clock;
  EXPECT_FALSE(AssignmentBoard::Start({.directory = "assign"}, clock));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
