#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/cli_testing.h"
#include "net/compute_identity.h"

namespace expanse::cli {
namespace {

control::v1::Compute MakeCompute(const std::string& id, const std::string& name,
                                 common::v1::ComputeState state) {
  control::v1::Compute compute;
  compute.set_compute_id("0191e7a0-0000-7000-8000-0000000000" + id);
  compute.set_name(name);
  compute.set_type(common::v1::SOURCE_TYPE_HOST);
  compute.set_state(state);
  return compute;
}

class ComputeCommands : public testing::Test {
 protected:
  ComputeCommands() {
    platform_.computes = {MakeCompute("01", "gpu-box-3", common::v1::COMPUTE_STATE_ACTIVE),
                          MakeCompute("02", "twin", common::v1::COMPUTE_STATE_PENDING),
                          MakeCompute("03", "twin", common::v1::COMPUTE_STATE_REVOKED)};
    platform_.computes[0].set_daemon_version("0.1.0");
    platform_.computes[0].mutable_last_heartbeat_at()->set_seconds(1'790'000'000);
    harness_.SignIn(platform_);
  }
  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
};

TEST_F(ComputeCommands, RegisterPrintsTokenAndCommand) {
  ASSERT_EQ(harness_.Run(
                {"compute", "register", "--type", "host", "--name", "bench", "--team-id", "t-1"}),
            0)
      << terminal_.err;
  EXPECT_EQ(platform_.registered.team_id(), "t-1");
  EXPECT_EQ(terminal_.out,
            "COMPUTE ID     0191e7a0-0000-7000-8000-00000000dddd\n"
            "NAME           bench\n"
            "TYPE           host\n"
            "INSTALL TOKEN  exp_install_new\n"
            "TOKEN ENDS     2027-01-15T09:00:00Z\n"
            "RUN ON IT      expanse compute install --control-plane https://control.example.org "
            "--data-plane "
            "'https://data.example.org/it'\\''s'\n");
  // The token is never part of the command that people paste.
  EXPECT_EQ(terminal_.out.find("exp_install_", terminal_.out.find("RUN ON IT")), std::string::npos);
}

TEST_F(ComputeCommands, RegisterAsksForTheTypeOnATerminalOnly) {
  EXPECT_EQ(harness_.Run({"compute", "register"}), 2);
  EXPECT_EQ(
      terminal_.err,
      "expanse: compute register: no type is given\nTry: expanse compute register --type host\n");
  terminal_.can_ask = true;
  terminal_.answers = {"Slurm"};
  ASSERT_EQ(harness_.Run({"compute", "register"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.registered.type(), common::v1::SOURCE_TYPE_SLURM);
  EXPECT_NE(terminal_.out.find("--type slurm --write-config-only"), std::string::npos);
  terminal_.answers = {""};
  ASSERT_EQ(harness_.Run({"compute", "register"}), 0);
  EXPECT_EQ(platform_.registered.type(), common::v1::SOURCE_TYPE_HOST);
  terminal_.answers = {"toaster"};
  EXPECT_EQ(harness_.Run({"compute", "register"}), 2);
}

TEST_F(ComputeCommands, RegisterJsonIsTheApis) {
  ASSERT_EQ(harness_.Run({"compute", "register", "--type", "host", "--name", "bench", "--json"}),
            0);
  ExpectGolden(std::string(EXPANSE_SOURCE_DIR) + "/testdata", "register.json", terminal_.out);
}

TEST_F(ComputeCommands, ListShowsStates) {
  ASSERT_EQ(harness_.Run({"compute", "list"}), 0);
  EXPECT_EQ(
      terminal_.out,
      "COMPUTE ID                            NAME       TYPE  STATE    LAST HEARTBEAT        "
      "DAEMON\n"
      "0191e7a0-0000-7000-8000-000000000001  gpu-box-3  host  active   2026-09-21T14:13:20Z  "
      "0.1.0\n"
      "0191e7a0-0000-7000-8000-000000000002  twin       host  pending  -                     -\n");
  ASSERT_EQ(harness_.Run({"compute", "list", "--all"}), 0);
  EXPECT_NE(terminal_.out.find("revoked"), std::string::npos);
  platform_.computes.clear();
  ASSERT_EQ(harness_.Run({"compute", "list"}), 0);
  EXPECT_NE(terminal_.err.find("No computes yet"), std::string::npos);
}

TEST_F(ComputeCommands, ShowHasTheHealthOfCollectors) {
  auto* node = platform_.health.add_nodes();
  node->set_node("n1");
  auto* row = node->add_rows();
  row->set_collector("cgroup");
  row->set_status(data::v1::HEALTH_STATUS_DEGRADED);
  row->set_reason("no_permission");
  row->set_message("sampled by process tree");
  ASSERT_EQ(harness_.Run({"compute", "show", "gpu-box-3"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out,
            "COMPUTE ID      0191e7a0-0000-7000-8000-000000000001\n"
            "NAME            gpu-box-3\n"
            "TYPE            host\n"
            "STATE           active\n"
            "DAEMON          0.1.0\n"
            "LAST HEARTBEAT  2026-09-21T14:13:20Z\n"
            "\n"
            "NODE  COLLECTOR  STATUS    CHECKED  REASON         MESSAGE\n"
            "n1    cgroup     degraded  -        no_permission  sampled by process tree\n");
}

TEST_F(ComputeCommands, NamesAreLookedUpAndMustBeOne) {
  EXPECT_EQ(harness_.Run({"compute", "show", "nowhere"}), 3);
  EXPECT_TRUE(
      terminal_.err.starts_with("expanse: compute show: no compute is called 'nowhere'\nTry: "))
      << terminal_.err;
  EXPECT_EQ(harness_.Run({"compute", "show", "twin"}), 6);
  EXPECT_NE(terminal_.err.find("0191e7a0-0000-7000-8000-000000000003"), std::string::npos);
  EXPECT_EQ(harness_.Run({"compute", "show", "0191e7a0-0000-7000-8000-00000000ffff"}), 3);
}

TEST_F(ComputeCommands, RevokeAsksUnlessToldNotTo) {
  EXPECT_EQ(harness_.Run({"compute", "revoke", "gpu-box-3"}), 2);
  EXPECT_NE(terminal_.err.find("Try: expanse compute revoke --yes"), std::string::npos);
  EXPECT_EQ(platform_.revoked, "");
  terminal_.can_ask = true;
  terminal_.answers = {""};
  EXPECT_EQ(harness_.Run({"compute", "revoke", "gpu-box-3"}), 1);
  EXPECT_EQ(platform_.revoked, "");
  EXPECT_EQ(harness_.Run({"compute", "revoke", "gpu-box-3", "--yes"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.revoked, "0191e7a0-0000-7000-8000-000000000001");
}

TEST_F(ComputeCommands, ReissueGivesAnotherToken) {
  ASSERT_EQ(harness_.Run({"compute", "reissue", "gpu-box-3"}), 0) << terminal_.err;
  EXPECT_NE(terminal_.out.find("exp_install_again"), std::string::npos);
}

class InstallCommand : public testing::Test {
 protected:
  InstallCommand() { harness_.app.environment["EXPANSE_INSTALL_TOKEN"] = "exp_install_good"; }
  int Install(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"compute",       "install",      "--control-plane",
                                      platform_.url(), "--data-plane", platform_.url()};
    words.insert(words.end(), more.begin(), more.end());
    return harness_.Run(words);
  }
  std::string ConfigPath() { return harness_.app.StatePath("config.json"); }
  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
};

TEST_F(InstallCommand, WritesTheIdentityForItsOwnerOnly) {
  ASSERT_EQ(Install(), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out, "0191e7a0-0000-7000-8000-00000000dddd\n");
  EXPECT_EQ(terminal_.err.find("warning"), std::string::npos) << terminal_.err;
  const auto identity = net::ReadComputeIdentity(ConfigPath());
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->credential, "exp_compute_good");
  EXPECT_EQ(identity->type, "host");
  EXPECT_EQ(identity->data_plane_url, platform_.url());
  struct stat info{};
  ASSERT_EQ(stat(ConfigPath().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
}

TEST_F(InstallCommand, FindsTheDataPlaneItself) {
  ASSERT_EQ(harness_.Run({"compute", "install", "--control-plane", platform_.url()}), 0)
      << terminal_.err;
  EXPECT_EQ(net::ReadComputeIdentity(ConfigPath())->data_plane_url, platform_.url());
}

TEST_F(InstallCommand, AsksForTheTokenWithoutEcho) {
  harness_.app.environment.clear();
  EXPECT_EQ(Install(), 2);
  EXPECT_NE(terminal_.err.find("EXPANSE_INSTALL_TOKEN"), std::string::npos);
  terminal_.can_ask = true;
  terminal_.answers = {"exp_install_good"};
  EXPECT_EQ(Install(), 0) << terminal_.err;
  EXPECT_EQ(terminal_.secrets_asked, 1);
  EXPECT_EQ(terminal_.err.find("exp_install_good"), std::string::npos);
}

TEST_F(InstallCommand, NeverReplacesAnIdentity) {
  ASSERT_EQ(Install(), 0);
  platform_.exchanged.Clear();
  EXPECT_EQ(Install(), 6);
  EXPECT_EQ(terminal_.err,
            "expanse: compute install: existing daemon config found: " + ConfigPath() +
                " is compute 0191e7a0-0000-7000-8000-00000000dddd\n"
                "Try: --reinstall to keep that identity, or --config for another file\n");
  EXPECT_EQ(platform_.exchanged.install_token(), "");  // the token is not spent
  ASSERT_EQ(chmod(ConfigPath().c_str(), 0644), 0);
  EXPECT_EQ(Install(), 6);
  EXPECT_EQ(platform_.exchanged.install_token(), "");
}

TEST_F(InstallCommand, ReinstallKeepsTheIdentityAndReadsNoToken) {
  EXPECT_EQ(Install({"--reinstall"}), 3);
  ASSERT_EQ(Install(), 0);
  platform_.exchanged.Clear();
  EXPECT_EQ(Install({"--reinstall"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.exchanged.install_token(), "");
  platform_.FailWith("MintComputeToken",
                     {base::Code::kUnauthenticated, "auth.credential", "revoked"});
  EXPECT_EQ(Install({"--reinstall"}), 4);
  EXPECT_NE(terminal_.err.find("Try: expanse compute reissue 0191e7a0"), std::string::npos);
}

TEST_F(InstallCommand, ChecksThePathBeforeSpendingTheToken) {
  ASSERT_TRUE(base::WriteFileAtomically(harness_.home.path() + "/file", "", 0600));
  EXPECT_EQ(Install({"--config", harness_.home.path() + "/file/config.json"}), 6) << terminal_.err;
  EXPECT_EQ(platform_.exchanged.install_token(), "");
}

TEST_F(InstallCommand, RefusedTokenLeavesNothing) {
  harness_.app.environment["EXPANSE_INSTALL_TOKEN"] = "exp_install_other";
  EXPECT_EQ(Install(), 4);
  EXPECT_FALSE(base::Exists(ConfigPath()));
  EXPECT_EQ(terminal_.err.find("exp_install_other"), std::string::npos);
  harness_.app.environment["EXPANSE_INSTALL_TOKEN"] = "exp_user_mixed_up";
  EXPECT_EQ(Install(), 2);
  EXPECT_EQ(terminal_.err.find("mixed_up"), std::string::npos);
}

TEST_F(InstallCommand, SaysWhatThisVersionCannotDo) {
  for (const char* type : {"slurm", "kubernetes", "nomad"}) {
    EXPECT_EQ(Install({"--type", type}), 1);
    EXPECT_NE(terminal_.err.find("is not supported by this version yet"), std::string::npos);
    EXPECT_EQ(platform_.calls(), 0);
  }
  EXPECT_EQ(Install({"--type", "kubernetes", "--write-config-only"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.exchanged.type(), common::v1::SOURCE_TYPE_KUBERNETES);
}

TEST_F(InstallCommand, WritesTheIdentityOfASlurmClusterAndSaysWhatIsLeftToDo) {
  platform_.exchanged_type = common::v1::SOURCE_TYPE_SLURM;
  ASSERT_EQ(Install({"--type", "slurm", "--write-config-only"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.exchanged.type(), common::v1::SOURCE_TYPE_SLURM);
  EXPECT_EQ(net::ReadComputeIdentity(ConfigPath())->type, "slurm");
  EXPECT_NE(terminal_.err.find("add the hooks to slurm.conf"), std::string::npos);
}

}  // namespace
}  // namespace expanse::cli
