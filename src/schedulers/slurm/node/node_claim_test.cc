#include "schedulers/slurm/node/node_claim.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

class NodeClaimTest : public testing::Test {
 protected:
  NodeClaimOptions Options(NodeRole role, std::string version = "2.0.0") {
    return {.run_directory = run_, .version = std::move(version), .role = role, .patience = 10s};
  }
  std::string Marker() const {
    return base::ReadFile(base::JoinPath(run_, "hooks/sampler")).value_or("");
  }
  // Another process that claims the node until it is told to end, as the daemon does.
  pid_t Holder(NodeRole role, const std::string& version) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_NAME, "expanse-daemon");
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGTERM);
      ::sigprocmask(SIG_BLOCK, &set, nullptr);
      {
        auto claim = NodeClaim::Take(Options(role, version), clock_);
        if (!claim) ::_exit(1);
        int signal = 0;
        ::sigwait(&set, &signal);
      }
      ::_exit(0);
    }
    for (int i = 0; i < 1000 && Marker().empty(); ++i) {
      (void)clock_.WaitFor(std::stop_token(), 10ms);
    }
    return pid;
  }
  static int Wait(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
  }
  std::string Reason(NodeRole role, const std::string& version) {
    auto claim = NodeClaim::Take(Options(role, version), clock_);
    return claim ? "" : claim.error().reason;
  }

  mode_t Mode(const std::string& name) const {
    struct stat info{};
    EXPECT_EQ(::stat(base::JoinPath(run_, name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  }

  base::SystemClock clock_;
  base::TempDir temp_ = *base::TempDir::Create("claim");
  const std::string run_ = base::JoinPath(temp_.path(), "run/expanse");
};

TEST(NodeMarker, IsThreeWords) {
  const NodeMarker marker{.pid = 1234, .version = "0.1.0", .role = NodeRole::kController};
  EXPECT_EQ(FormatMarker(marker), "1234 0.1.0 controller\n");
  EXPECT_EQ(ParseMarker(FormatMarker(marker)), marker);
  for (const char* junk : {"", "1234", "1234 0.1.0", "1234 0.1.0 pilot", "1 0.1.0 sampler",
                           "-5 0.1.0 sampler", "x 0.1.0 sampler", "1234 0.1.0 sampler x"}) {
    EXPECT_FALSE(ParseMarker(junk)) << junk;
  }
}

// The TaskProlog runs as the job's user, and services have a umask of 0077.
TEST_F(NodeClaimTest, TasksOfAllUsersSeeTheAgentsDirectory) {
  const mode_t before = ::umask(0077);
  const auto claim = NodeClaim::Take(Options(NodeRole::kController), clock_);
  ::umask(before);
  ASSERT_TRUE(claim);
  EXPECT_EQ(Mode(""), 0755U);
  EXPECT_EQ(Mode("agent"), 0755U);
  EXPECT_EQ(Mode("hooks"), 0700U);
}

TEST_F(NodeClaimTest, MarksTheNodeWhileItLasts) {
  {
    auto claim = NodeClaim::Take(Options(NodeRole::kSampler), clock_);
    ASSERT_TRUE(claim) << claim.error().message;
    EXPECT_EQ(Marker(), std::to_string(::getpid()) + " 2.0.0 sampler\n");
    ASSERT_TRUE(base::RemoveFile(base::JoinPath(run_, "hooks/sampler")));
    EXPECT_TRUE(claim->Renew());
    EXPECT_NE(Marker(), "");
  }
  EXPECT_EQ(Marker(), "");
}

TEST_F(NodeClaimTest, LeavesTheNodeToOneOfItsVersionAndToAController) {
  pid_t holder = Holder(NodeRole::kSampler, "2.0.0");
  EXPECT_EQ(Reason(NodeRole::kSampler, "2.0.0"), "node.taken");
  ::kill(holder, SIGTERM);
  EXPECT_EQ(Wait(holder), 0);
  holder = Holder(NodeRole::kController, "1.0.0");
  EXPECT_EQ(Reason(NodeRole::kSampler, "2.0.0"), "node.taken");
  EXPECT_EQ(Reason(NodeRole::kController, "2.0.0"), "node.taken");
  ::kill(holder, SIGTERM);
  EXPECT_EQ(Wait(holder), 0);
}

TEST_F(NodeClaimTest, ReplacesASamplerOfAnotherVersion) {
  const pid_t holder = Holder(NodeRole::kSampler, "1.0.0");
  EXPECT_EQ(Reason(NodeRole::kSampler, "2.0.0"), "");
  EXPECT_EQ(Wait(holder), 0) << "it ended of itself, with its last segment written";
}

TEST_F(NodeClaimTest, LetsAControllerTakeOverEvenFromOneThatIsStopped) {
  const pid_t holder = Holder(NodeRole::kSampler, "2.0.0");
  ::kill(holder, SIGSTOP);
  EXPECT_EQ(Reason(NodeRole::kController, "2.0.0"), "");
  EXPECT_EQ(Wait(holder), 0);
}

TEST_F(NodeClaimTest, TakesWhatADeadOneLeft) {
  const pid_t holder = Holder(NodeRole::kSampler, "2.0.0");
  ::kill(holder, SIGKILL);
  Wait(holder);
  EXPECT_NE(Marker(), "");
  EXPECT_EQ(Reason(NodeRole::kSampler, "2.0.0"), "");
}

// The marker that was left behind names a pid that is somebody else's now.
TEST_F(NodeClaimTest, TellsNobodyElseToEnd) {
  const pid_t other = ::fork();
  if (other == 0) {
    ::prctl(PR_SET_NAME, "innocent");
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  const pid_t holder = Holder(NodeRole::kSampler, "1.0.0");
  ASSERT_TRUE(base::WriteFileAtomically(base::JoinPath(run_, "hooks/sampler"),
                                        std::to_string(other) + " 1.0.0 sampler\n", 0644));
  NodeClaimOptions options = Options(NodeRole::kSampler);
  options.patience = 300ms;
  auto claim = NodeClaim::Take(options, clock_);
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().reason, "node.stuck");
  EXPECT_EQ(::waitpid(other, nullptr, WNOHANG), 0) << "it lives";
  ::kill(other, SIGKILL);
  Wait(other);
  ::kill(holder, SIGTERM);
  Wait(holder);
}

}  // namespace
}  // namespace expanse::schedulers::slurm
