#include "schedulers/slurm/files/file_router.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "base/crypto.h"
#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

class FileRouterTest : public testing::Test {
 protected:
  FileRouterTest() {
    JobFilesOptions options;
    options.user = [](uid_t) -> base::Result<collect::UserIdentity> {
      return collect::UserIdentity{.uid = ::geteuid(), .gid = ::getegid(), .groups = {}};
    };
    files_ = JobFiles::Start(options, clock_).value();
    board_ = AssignmentBoard::Start({.directory = assign_, .interval = 1s}, clock_).value();
    router_.emplace(*files_, board_.get(), switches_, clock_);
  }
  static evidence::ExecutionKey Key(std::uint32_t id) {
    return {evidence::SourceType::kSlurm, std::to_string(id)};
  }
  JobFilesRequest Job(std::uint32_t id) {  // and writes its output
    JobFilesRequest request;
    request.key = Key(id);
    request.job_id = id;
    request.uid = 1001;
    request.stdout_path = base::JoinPath(dir_.path(), std::to_string(id) + ".out");
    request.command = "/gone/job.sh";
    request.script = "#!/bin/sh\n";
    EXPECT_TRUE(base::WriteFileAtomically(request.stdout_path, "text\n", 0644));
    return request;
  }
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
  std::optional<Assignment> Assigned(const std::string& host, std::uint32_t id) const {
    const auto text = base::ReadFile(base::JoinPath(assign_, host));
    if (!text) return std::nullopt;
    for (auto& job : ParseAssignments(*text, host).value_or(std::vector<Assignment>{}))
      if (job.job_id == id) return std::move(job);
    return std::nullopt;
  }
  // Counts of what was read here so far.
  void Count() {
    for (const auto& payload : files_->Take(100)) {
      tails_ += std::holds_alternative<evidence::LogTail>(payload) ? 1 : 0;
      bundles_ += std::holds_alternative<evidence::SourceBundle>(payload) ? 1 : 0;
    }
  }

  base::TempDir dir_ = base::TempDir::Create("router").value();
  std::string assign_ = base::JoinPath(dir_.path(), "assign");
  base::FakeClock clock_;
  CaptureSwitches switches_;
  std::unique_ptr<JobFiles> files_;
  std::unique_ptr<AssignmentBoard> board_;
  std::optional<FileRouter> router_;
  int tails_ = 0;
  int bundles_ = 0;
};

TEST_F(FileRouterTest, LeavesOutputToTheSamplerAndTakesTheScriptItself) {
  router_->SetSamplers({"cn1"});
  ASSERT_TRUE(router_->Follow(Job(1), "cn1"));
  ASSERT_TRUE(Await([&] { return Assigned("cn1", 1).has_value(); }));
  const Assignment job = *Assigned("cn1", 1);
  EXPECT_TRUE(job.logs);
  EXPECT_TRUE(job.sources);
  EXPECT_EQ(job.stdout_path, Job(1).stdout_path);
  EXPECT_EQ(job.script_sha256, base::Sha256Hex("#!/bin/sh\n"));
  ASSERT_TRUE(Await([&] {
    Count();
    return bundles_ == 1;
  }));
  ASSERT_TRUE(router_->Ended(Key(1)));
  ASSERT_TRUE(Await([&] { return Assigned("cn1", 1)->ended; }));
  Count();
  EXPECT_EQ(tails_, 0);
  // The file is cleaned up in the end.
  ASSERT_TRUE(Await([&] {
    router_->SetSamplers({"cn1"});
    return !Assigned("cn1", 1);
  }));
  EXPECT_EQ(router_->assigned(), 0U);
}

TEST_F(FileRouterTest, LooksItselfWhereThereIsNoSampler) {
  router_->SetSamplers({"cn1"});
  JobFilesRequest root = Job(3);
  root.uid = 0;
  ASSERT_TRUE(router_->Follow(Job(1), "cn2"));
  ASSERT_TRUE(router_->Follow(Job(2), ""));
  ASSERT_TRUE(router_->Follow(root, "cn1"));  // samplers read nothing as root
  EXPECT_EQ(router_->assigned(), 0U);
  EXPECT_TRUE(Await([&] {
    Count();
    return tails_ == 3;
  }));
}

TEST_F(FileRouterTest, TakesOverWhenTheSamplerIsGone) {
  router_->SetSamplers({"cn1"});
  ASSERT_TRUE(router_->Follow(Job(1), "cn1"));
  ASSERT_TRUE(router_->Follow(Job(2), "cn1"));
  ASSERT_TRUE(Await([&] { return Assigned("cn1", 2).has_value(); }));
  ASSERT_TRUE(router_->Ended(Key(2)));
  router_->SetSamplers({});
  EXPECT_EQ(router_->assigned(), 0U);
  EXPECT_TRUE(Await([&] {
    Count();
    return tails_ >= 2 && bundles_ >= 2 && !Assigned("cn1", 1) && !Assigned("cn1", 2);
  }));
  EXPECT_EQ(bundles_, 2);  // one each, although both were followed twice
}

// The first job of a node: its own Prolog starts the sampler, and the job may be over before the
// sampler is heard of.
TEST_F(FileRouterTest, LeavesYoungJobsToASamplerThatAppears) {
  router_->SetSamplers({});
  ASSERT_TRUE(router_->Follow(Job(1), "cn1"));
  ASSERT_TRUE(router_->Follow(Job(2), "cn1"));
  ASSERT_TRUE(router_->Follow(Job(3), "cn2"));
  ASSERT_TRUE(router_->Ended(Key(2)));
  router_->SetSamplers({"cn1"});
  EXPECT_EQ(router_->assigned(), 2U);
  ASSERT_TRUE(Await([&] { return Assigned("cn1", 1) && Assigned("cn1", 2); }));
  EXPECT_TRUE(Assigned("cn1", 1)->logs);
  EXPECT_FALSE(Assigned("cn1", 1)->ended);
  EXPECT_TRUE(Assigned("cn1", 2)->ended);
  clock_.Advance(10min);  // nothing is remembered for ever
  router_->SetSamplers({"cn1", "cn2"});
  EXPECT_FALSE(Assigned("cn2", 3));
  EXPECT_EQ(router_->assigned(), 1U) << "the ended one is cleaned up, the third is not young";
}

TEST_F(FileRouterTest, TellsTheSamplerWhatIsOff) {
  router_->SetSamplers({"cn1"});
  JobFilesRequest job = Job(1);
  job.comment = "expanse=nologs";
  ASSERT_TRUE(router_->Follow(job, "cn1"));
  ASSERT_TRUE(Await([&] { return Assigned("cn1", 1).has_value(); }));
  EXPECT_FALSE(Assigned("cn1", 1)->logs);
  job.comment = "expanse=off";
  ASSERT_TRUE(router_->Follow(job, "cn1"));
  EXPECT_TRUE(Await([&] { return !Assigned("cn1", 1)->sources; }));
}

TEST_F(FileRouterTest, WaitsForTheScriptBeforeSourcesAreAssigned) {
  router_->SetSamplers({"cn1"});
  JobFilesRequest job = Job(1);
  job.script.clear();
  job.script_pending = true;
  ASSERT_TRUE(router_->Follow(job, "cn1"));
  ASSERT_TRUE(Await([&] { return Assigned("cn1", 1).has_value(); }));
  EXPECT_FALSE(Assigned("cn1", 1)->sources);
  ASSERT_TRUE(router_->Follow(Job(1), "cn1"));
  EXPECT_TRUE(Await([&] { return Assigned("cn1", 1)->sources; }));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
