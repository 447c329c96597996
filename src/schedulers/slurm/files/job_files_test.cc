// The thread around JobFollower; what is followed when is tested there.
#include "schedulers/slurm/files/job_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/files.h"
#include "schedulers/slurm/files/script_pool.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

// A user data base that does not answer until it is told to: what a hung file server looks like
// from here.
class Gate {
 public:
  void Wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait_for(lock, 30s, [this] { return open_; });
  }
  void AwaitWaiter() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, 30s, [this] { return waiting_ > 0; }));
  }
  void Open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

class JobFilesTest : public testing::Test {
 protected:
  JobFilesRequest Job(const std::string& id) {
    JobFilesRequest request;
    request.key = {evidence::SourceType::kSlurm, id};
    request.uid = ::geteuid();
    request.stdout_path = base::JoinPath(dir_.path(), id + ".out");
    return request;
  }
  static JobFilesOptions Options() {
    JobFilesOptions options;
    options.user = [](uid_t uid) -> base::Result<collect::UserIdentity> {
      return collect::UserIdentity{.uid = uid, .gid = ::getegid(), .groups = {}};
    };
    return options;
  }
  // Time goes on until there are results: the thread looks whenever the clock moves.
  std::vector<evidence::Payload> Await(JobFiles& files) {
    while (std::chrono::steady_clock::now() < deadline_) {
      if (auto taken = files.Take(10); !taken.empty()) return taken;
      clock_.Advance(1s);
      std::this_thread::yield();
    }
    return {};
  }

  base::TempDir dir_ = base::TempDir::Create("jobfiles").value();
  base::FakeClock clock_;
  const std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::now() + 60s;
};

TEST_F(JobFilesTest, GivesTailsAndTakesThemBack) {
  ASSERT_TRUE(base::WriteFileAtomically(Job("1").stdout_path, "text\n", 0644));
  auto files = JobFiles::Start(Options(), clock_).value();
  ASSERT_TRUE(files->Follow(Job("1")));
  ASSERT_TRUE(files->Ended(Job("1").key));
  auto taken = Await(*files);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(std::get<evidence::LogTail>(taken[0]).data, "text\n");
  EXPECT_EQ(std::get<evidence::LogTail>(taken[0]).key, Job("1").key);
  files->PutBack(std::move(taken));
  EXPECT_EQ(files->Take(10).size(), 1U);
  EXPECT_TRUE(files->Take(10).empty());
  EXPECT_EQ(files->health().status, evidence::HealthStatus::kOk);
  files->Stop();
  files->Stop();
}

TEST_F(JobFilesTest, AHungFileSystemShowsInHealthAndStopsNothingElse) {
  auto gate = std::make_shared<Gate>();
  JobFilesOptions options = Options();
  options.max_requests = 3;
  options.user = [gate](uid_t uid) -> base::Result<collect::UserIdentity> {
    gate->Wait();
    return collect::UserIdentity{.uid = uid, .gid = ::getegid(), .groups = {}};
  };
  auto files = JobFiles::Start(options, clock_).value();
  ASSERT_TRUE(files->Follow(Job("hung")));
  clock_.Advance(1s);
  gate->AwaitWaiter();
  EXPECT_EQ(files->health().status, evidence::HealthStatus::kOk);
  clock_.Advance(31s);
  const auto row = files->health();
  EXPECT_EQ(row.reason, "hangs");
  EXPECT_NE(row.message.find("hung.out"), std::string::npos);
  // What comes meanwhile waits, within bounds.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(files->Follow(Job("w" + std::to_string(i))));
  EXPECT_FALSE(files->Follow(Job("w3")));
  EXPECT_TRUE(files->Take(1).empty());
  gate->Open();
  while (files->health().reason == "hangs" && std::chrono::steady_clock::now() < deadline_) {
    clock_.Advance(1ms);
    std::this_thread::yield();
  }
  EXPECT_EQ(files->health().reason, "behind");  // one was refused
}

TEST_F(JobFilesTest, LeavesAStuckThreadBehind) {
  auto gate = std::make_shared<Gate>();
  auto clock = std::make_shared<base::FakeClock>();
  JobFilesOptions options = Options();
  options.user = [gate](uid_t) -> base::Result<collect::UserIdentity> {
    gate->Wait();
    return base::Fail(base::Code::kNotFound, "user.unknown", "");
  };
  auto files = JobFiles::Start(options, *clock).value();
  ASSERT_TRUE(files->Follow(Job("stuck")));
  clock->Advance(1s);
  gate->AwaitWaiter();
  const auto begin = std::chrono::steady_clock::now();
  files->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  files.reset();
  clock.reset();  // the thread must not need it any more
  gate->Open();
}

TEST_F(JobFilesTest, SaysWhenItMayNotReadAsOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be refused another identity on purpose";
  JobFilesOptions options = Options();
  options.user = [](uid_t) -> base::Result<collect::UserIdentity> {
    return collect::UserIdentity{.uid = static_cast<uid_t>(-1), .gid = 1, .groups = {}};
  };
  ASSERT_TRUE(base::WriteFileAtomically(Job("1").stdout_path, "secret\n", 0644));
  auto files = JobFiles::Start(options, clock_).value();
  JobFilesRequest job = Job("1");
  job.script = "#!/bin/sh\n";
  job.ended = true;
  ASSERT_TRUE(files->Follow(job));
  // In one record or in two, as the thread comes to look before or after the job has settled.
  std::vector<std::string> notes;
  while (notes.size() < 2) {
    const auto taken = Await(*files);
    ASSERT_FALSE(taken.empty());
    for (const evidence::Payload& payload : taken) {
      const auto& seen = std::get<evidence::ExecutionObservation>(payload);
      notes.insert(notes.end(), seen.execution.capture_notes.begin(),
                   seen.execution.capture_notes.end());
    }
  }
  EXPECT_EQ(notes, (std::vector<std::string>{"sources: the daemon may not read as the job's user",
                                             "stdout: the daemon may not read as the job's user"}));
  // The figures that health is made of are published after the records.
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (files->health().reason.empty() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(files->health().reason, "no_permission");
}

TEST(ScriptPool, KeepsOneOfEachAndCountsTheirBytes) {
  ScriptPool pool(100);
  const ScriptText a = pool.Add(std::string(60, 'a'), 1000);
  EXPECT_EQ(pool.Add(std::string(60, 'a'), 1000), a);
  EXPECT_EQ(pool.bytes(), 60U);
  EXPECT_EQ(pool.Add(std::string(60, 'b'), 1000), nullptr);
  ScriptText cut = pool.Add(std::string(500, 'c'), 30);
  ASSERT_NE(cut, nullptr);
  EXPECT_EQ(cut->size(), 30U);
  cut.reset();
  EXPECT_EQ(pool.bytes(), 60U);
  for (int i = 0; i < 1000; ++i) EXPECT_NE(pool.Add(std::to_string(i), 10), nullptr);
  EXPECT_EQ(pool.bytes(), 60U);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
