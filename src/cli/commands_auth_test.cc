#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "cli/cli_testing.h"
#include "cli/session.h"

namespace expanse::cli {
namespace {

class AuthCommands : public testing::Test {
 protected:
  SessionStore Store() { return SessionStore(harness_.app.StatePath("session.json")); }
  FakePlatform platform_;
  CliHarness harness_;
  FakeTerminal& terminal_ = harness_.terminal;
};

TEST_F(AuthCommands, LoginKeepsASessionAndNotTheKey) {
  ASSERT_EQ(harness_.Run(
                {"login", "--api-key", "exp_user_good", "--control-plane", platform_.url() + "/"}),
            0)
      << terminal_.err;
  EXPECT_EQ(terminal_.out, "");
  EXPECT_EQ(terminal_.err, "Signed in to Example Lab as Ada.\n");
  const auto text = base::ReadFile(harness_.app.StatePath("session.json"));
  ASSERT_TRUE(text);
  EXPECT_EQ(text->find("exp_user_"), std::string::npos);
  const auto session = Store().Load();
  ASSERT_TRUE(session && *session);
  EXPECT_EQ((*session)->control_plane_url, platform_.url());
  EXPECT_EQ((*session)->data_plane_url, platform_.url());
  struct stat info{};
  ASSERT_EQ(stat(harness_.app.StatePath("session.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
}

TEST_F(AuthCommands, LoginTakesKeyFromStandardInputAndAsksForItOnATerminal) {
  terminal_.input = "exp_user_good";
  EXPECT_EQ(harness_.Run({"login", "--api-key", "-", "--control-plane", platform_.url()}), 0)
      << terminal_.err;
  terminal_.can_ask = true;
  terminal_.answers = {" exp_user_good "};
  // The control plane is that of the earlier session.
  EXPECT_EQ(harness_.Run({"login", "--organisation-id", "org-2"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.secrets_asked, 1);
  EXPECT_EQ(platform_.login.organisation_id(), "org-2");
  terminal_.answers.clear();
  EXPECT_EQ(harness_.Run({"login"}), 130);
}

TEST_F(AuthCommands, LoginRedeemsTheLinkOfTheFirstStart) {
  harness_.app.environment["EXPANSE_SIGN_IN_LINK"] = platform_.url() + "/sign-in#exp_link_good";
  ASSERT_EQ(harness_.Run({"login"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.login.sign_in_token(), "exp_link_good");
  EXPECT_NE(terminal_.err.find("expanse keys create"), std::string::npos);
}

TEST_F(AuthCommands, LoginSaysWhatIsMissingOrWrong) {
  EXPECT_EQ(harness_.Run({"login"}), 2);
  EXPECT_EQ(terminal_.err,
            "expanse: login: no key is given\nTry: EXPANSE_API_KEY=exp_user_… expanse login\n");
  EXPECT_EQ(harness_.Run({"login", "--api-key", "exp_user_good"}), 2);
  EXPECT_EQ(terminal_.err,
            "expanse: login: no control plane is given and there is no earlier session\n"
            "Try: expanse login --control-plane https://expanse.example.org\n");
  EXPECT_EQ(harness_.Run({"login", "--api-key", "s3cret", "--control-plane", platform_.url()}), 2);
  EXPECT_EQ(terminal_.err.find("s3cret"), std::string::npos);
  EXPECT_EQ(harness_.Run({"login", "--api-key", "exp_user_x", "--sign-in-link", "exp_link_x"}), 2);
  EXPECT_EQ(platform_.calls(), 0);
  EXPECT_EQ(
      harness_.Run({"login", "--api-key", "exp_user_wrong", "--control-plane", platform_.url()}),
      4);
  EXPECT_EQ(terminal_.err.find("exp_user_wrong"), std::string::npos);
  EXPECT_FALSE(base::Exists(harness_.app.StatePath("session.json")));
}

TEST_F(AuthCommands, UnreachableServerIsExitCodeFiveWithinTheTimeout) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(harness_.Run(
                {"login", "--api-key", "exp_user_good", "--control-plane", "http://127.0.0.1:1"}),
            5);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(4));
  EXPECT_NE(terminal_.err.find("expanse: signing in to http://127.0.0.1:1: "), std::string::npos)
      << terminal_.err;
  EXPECT_NE(terminal_.err.find("\nTry: "), std::string::npos);
  harness_.SignIn(platform_);
  harness_.app.environment["EXPANSE_API_URL"] = "http://127.0.0.1:1";
  EXPECT_EQ(harness_.Run({"status"}), 5);
}

TEST_F(AuthCommands, WarnsBeforeASecretLeavesUnencrypted) {
  harness_.app.connect_timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(
      harness_.Run({"login", "--api-key", "exp_user_good", "--control-plane", "http://192.0.2.1"}),
      5);
  EXPECT_NE(terminal_.err.find("warning: the connection to http://192.0.2.1 is not encrypted"),
            std::string::npos);
}

TEST_F(AuthCommands, StatusShowsWhoAndWhere) {
  EXPECT_EQ(harness_.Run({"status"}), 4);
  EXPECT_EQ(terminal_.err, "expanse: status: nobody is signed in\nTry: expanse login\n");
  harness_.SignIn(platform_);
  ASSERT_EQ(harness_.Run({"status"}), 0) << terminal_.err;
  EXPECT_TRUE(
      terminal_.out.starts_with("USER                Ada\n"
                                "USER ID             0191e7a0-0000-7000-8000-00000000aaaa\n"
                                "ORGANISATION        Example Lab\n"))
      << terminal_.out;
  ASSERT_EQ(harness_.Run({"status", "--json"}), 0);
  EXPECT_NE(terminal_.out.find("\"user_name\": \"Ada\""), std::string::npos);
}

TEST_F(AuthCommands, RefusesASessionThatOthersCanRead) {
  harness_.SignIn(platform_);
  const std::string path = harness_.app.StatePath("session.json");
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(harness_.Run({"status"}), 4);
  EXPECT_NE(terminal_.err.find("can be read by others"), std::string::npos);
  EXPECT_NE(terminal_.err.find("Try: chmod 600 " + path), std::string::npos);
}

TEST_F(AuthCommands, DamagedSessionLeadsBackToLogin) {
  harness_.SignIn(platform_);
  ASSERT_TRUE(base::WriteFileAtomically(harness_.app.StatePath("session.json"), "{\"versi", 0600));
  EXPECT_EQ(harness_.Run({"status"}), 4);
  EXPECT_EQ(terminal_.err, "expanse: status: the session file is damaged\nTry: expanse login\n");
  EXPECT_EQ(harness_.Run({"logout"}), 0);
  EXPECT_FALSE(base::Exists(harness_.app.StatePath("session.json")));
}

TEST_F(AuthCommands, RenewsTheAccessTokenBeforeItEnds) {
  platform_.access_life = std::chrono::seconds(20);  // within the margin
  harness_.SignIn(platform_);
  platform_.access_life = std::chrono::seconds(600);
  ASSERT_EQ(harness_.Run({"status"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.refreshes(), 1);
  ASSERT_EQ(harness_.Run({"status"}), 0);
  EXPECT_EQ(platform_.refreshes(), 1);  // the renewed one was kept
}

TEST_F(AuthCommands, RenewsOnceWhenATokenIsRefusedThatLookedFresh) {
  harness_.SignIn(platform_);
  platform_.ExpireAccessTokens();
  ASSERT_EQ(harness_.Run({"executions"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.refreshes(), 1);
  EXPECT_FALSE(platform_.session_ended());
}

TEST_F(AuthCommands, EndedSessionIsExitCodeFour) {
  harness_.SignIn(platform_);
  platform_.FailWith("Refresh",
                     {base::Code::kUnauthenticated, "auth.session_ended", "sign in again"});
  platform_.ExpireAccessTokens();
  EXPECT_EQ(harness_.Run({"status"}), 4);
  EXPECT_EQ(terminal_.err,
            "expanse: status: the session has ended: sign in again\nTry: expanse login\n");
}

TEST_F(AuthCommands, ManyCommandsAtOnceSpendNoRefreshTokenTwice) {
  harness_.SignIn(platform_);
  for (int round = 0; round < 3; ++round) {
    platform_.ExpireAccessTokens();
    std::vector<std::thread> threads;
    std::atomic<int> failures = 0;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&] {
        FakeTerminal terminal;
        base::SystemClock clock;
        App app{.terminal = terminal,
                .clock = clock,
                .environment = {},
                .state_directory = harness_.app.state_directory,
                .run_command = {}};
        if (RunCli(app, {"status"}) != 0) ++failures;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    EXPECT_FALSE(platform_.session_ended());
    EXPECT_EQ(platform_.refreshes(), round + 1);  // the others took what the first one got
  }
}

TEST_F(AuthCommands, RefreshForcesATokenAndSwitchesOrganisation) {
  harness_.SignIn(platform_);
  ASSERT_EQ(harness_.Run({"refresh", "--organisation-id", "org-2"}), 0) << terminal_.err;
  EXPECT_EQ(platform_.refreshes(), 1);
  EXPECT_EQ((*Store().Load())->organisation_id, "org-2");
  EXPECT_EQ((*Store().Load())->refresh_token, platform_.refresh_token());
}

TEST_F(AuthCommands, LogoutEndsTheSessionHereAndThere) {
  EXPECT_EQ(harness_.Run({"logout"}), 0);
  harness_.SignIn(platform_);
  EXPECT_EQ(harness_.Run({"logout"}), 0) << terminal_.err;
  EXPECT_TRUE(platform_.session_ended());
  EXPECT_FALSE(base::Exists(harness_.app.StatePath("session.json")));
  harness_.SignIn(platform_);
  harness_.app.environment["EXPANSE_API_URL"] = "http://127.0.0.1:1";
  EXPECT_EQ(harness_.Run({"logout"}), 0);
  EXPECT_NE(terminal_.err.find("warning: the session is removed here"), std::string::npos);
  EXPECT_FALSE(base::Exists(harness_.app.StatePath("session.json")));
}

TEST_F(AuthCommands, KeysAreMadeListedAndRevoked) {
  harness_.SignIn(platform_);
  ASSERT_EQ(harness_.Run({"keys", "create", "--name", "laptop"}), 0) << terminal_.err;
  EXPECT_EQ(terminal_.out, "exp_user_new\n");  // nothing else: it goes into files and variables
  control::v1::Key key;
  key.set_key_id("0191e7a0-0000-7000-8000-00000000cccc");
  key.set_name("lap\ttop");
  key.set_hint("exp_user_ab");
  key.mutable_created_at()->set_seconds(1'790'000'000);
  platform_.keys = {key};
  ASSERT_EQ(harness_.Run({"keys", "list"}), 0);
  EXPECT_EQ(terminal_.out,
            "KEY ID                                NAME      HINT         CREATED               "
            "LAST USED  REVOKED\n"
            "0191e7a0-0000-7000-8000-00000000cccc  lap\\ttop  exp_user_ab  2026-09-21T14:13:20Z  - "
            "         -\n");
  EXPECT_EQ(harness_.Run({"keys", "revoke", key.key_id()}), 2);
  EXPECT_EQ(platform_.revoked, "");
  terminal_.can_ask = true;
  terminal_.answers = {"n"};
  EXPECT_EQ(harness_.Run({"keys", "revoke", key.key_id()}), 1);
  EXPECT_EQ(platform_.revoked, "");
  terminal_.answers = {"Yes"};
  EXPECT_EQ(harness_.Run({"keys", "revoke", key.key_id()}), 0);
  EXPECT_EQ(platform_.revoked, key.key_id());
}

TEST(ExitCodes, AreFrozen) {
  using base::Code;
  const std::map<Code, int> expected = {
      {Code::kCancelled, 130},      {Code::kUnknown, 1},           {Code::kInvalidArgument, 2},
      {Code::kDeadlineExceeded, 5}, {Code::kNotFound, 3},          {Code::kAlreadyExists, 6},
      {Code::kPermissionDenied, 4}, {Code::kResourceExhausted, 1}, {Code::kFailedPrecondition, 6},
      {Code::kAborted, 6},          {Code::kOutOfRange, 2},        {Code::kUnimplemented, 1},
      {Code::kInternal, 1},         {Code::kUnavailable, 5},       {Code::kDataLoss, 1},
      {Code::kUnauthenticated, 4}};
  for (const auto& [code, exit] : expected)
    EXPECT_EQ(ExitCodeOf(code), exit) << base::CodeName(code);
}

TEST(ExitCodes, FollowTheServersErrors) {
  FakePlatform platform;
  CliHarness harness;
  harness.SignIn(platform);
  const std::map<base::Code, int> expected = {{base::Code::kPermissionDenied, 4},
                                              {base::Code::kNotFound, 3},
                                              {base::Code::kFailedPrecondition, 6},
                                              {base::Code::kInternal, 1},
                                              {base::Code::kInvalidArgument, 2}};
  for (const auto& [code, exit] : expected) {
    platform.FailWith("ListExecutions", {code, "test.reason", "why it\x1b[0m is"});
    EXPECT_EQ(harness.Run({"executions"}), exit) << base::CodeName(code);
    EXPECT_EQ(harness.terminal.out, "");
    EXPECT_TRUE(harness.terminal.err.starts_with("expanse: executions: ")) << harness.terminal.err;
    EXPECT_EQ(harness.terminal.err.find('\x1b'), std::string::npos);
  }
}

TEST(Output, ThatCannotBeWrittenIsAFailure) {
  CliHarness harness;
  harness.terminal.flush_status =
      base::Fail(base::Code::kResourceExhausted, "cli.output", "writing the result: no space left");
  EXPECT_EQ(harness.Run({"version"}), 1);
  EXPECT_NE(harness.terminal.err.find("no space left"), std::string::npos);
}

}  // namespace
}  // namespace expanse::cli
