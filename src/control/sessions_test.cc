#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "control/control_testing.h"
#include "control/permissions.h"
#include "control/secrets.h"

namespace expanse::control {
namespace {

using namespace std::chrono_literals;

class SessionsTest : public testing::Test {
 protected:
  base::Result<v1::RefreshResponse> Refresh(const std::string& token,
                                            const std::string& organisation = {}) {
    v1::RefreshRequest request;
    request.set_refresh_token(token);
    request.set_organisation_id(organisation);
    return control_.Call<v1::RefreshResponse>("AuthService.Refresh", request);
  }
  base::Result<v1::WhoAmIResponse> WhoAmI(const std::string& token) {
    return control_.Call<v1::WhoAmIResponse>("AuthService.WhoAmI", v1::WhoAmIRequest(), token);
  }
  base::Result<v1::LoginResponse> LoginWithKey(const std::string& key,
                                               const std::string& organisation = {}) {
    v1::LoginRequest request;
    request.set_api_key(key);
    request.set_organisation_id(organisation);
    return control_.Call<v1::LoginResponse>("AuthService.Login", request);
  }
  v1::CreateKeyResponse CreateKey(const std::string& token, const std::string& name = "laptop") {
    v1::CreateKeyRequest request;
    request.set_name(name);
    return control_.Call<v1::CreateKeyResponse>("KeyService.CreateKey", request, token).value();
  }
  base::Status RevokeKey(const std::string& token, const std::string& key_id) {
    v1::RevokeKeyRequest request;
    request.set_key_id(key_id);
    v1::RevokeKeyResponse response;
    return control_.CallErased("KeyService.RevokeKey", request, &response, token, "192.0.2.1:1");
  }

  ControlHarness control_;
};

TEST_F(SessionsTest, FirstStartGivesOneLinkAndLaterOnesNone) {
  const auto link = control_.plane->EnsureFirstOrganisation();
  ASSERT_TRUE(link && *link);
  EXPECT_TRUE((*link)->starts_with("https://control.example.org/sign-in#exp_link_")) << **link;
  EXPECT_FALSE(*control_.plane->EnsureFirstOrganisation());
  control_.Restart();
  EXPECT_FALSE(*control_.plane->EnsureFirstOrganisation());
}

TEST_F(SessionsTest, FirstOwnerSignsInOnceWithTheLink) {
  const std::string link = **control_.plane->EnsureFirstOrganisation();
  const auto login = control_.SignIn(link);
  ASSERT_TRUE(login) << login.error().message;
  EXPECT_EQ(login->identity().role(), "Owner");
  EXPECT_EQ(login->identity().organisation_name(), "Default");
  EXPECT_EQ(login->identity().permissions_size(), static_cast<int>(AllPermissions().size()));
  EXPECT_EQ(login->identity().submit_users(0), "ada");
  EXPECT_EQ(login->access().expires_at().seconds(),
            base::ToMicros(control_.clock.Now()) / 1'000'000 + 600);
  EXPECT_EQ(ReasonOf(control_.SignIn(link)), "auth.credentials");
  const auto who = WhoAmI(login->access().token());
  ASSERT_TRUE(who);
  EXPECT_EQ(who->identity().user_id(), login->identity().user_id());
}

TEST_F(SessionsTest, LinksExpire) {
  const std::string link = **control_.plane->EnsureFirstOrganisation();
  control_.clock.Advance(24h);
  EXPECT_EQ(ReasonOf(control_.SignIn(link)), "auth.credentials");
  EXPECT_TRUE(control_.SignIn(*control_.plane->NewSignInLink())) << "break-glass";
}

TEST_F(SessionsTest, NewLinkNeedsAKnownUser) {
  EXPECT_EQ(ReasonOf(control_.plane->NewSignInLink()), "identity.user_not_found") << "nobody yet";
  control_.SignInOwner();
  EXPECT_EQ(ReasonOf(control_.plane->NewSignInLink("nobody")), "identity.user_not_found");
}

TEST_F(SessionsTest, RefreshRotates) {
  const auto login = control_.SignInOwner();
  control_.clock.Advance(9min);
  const auto refreshed = Refresh(login.refresh_token());
  ASSERT_TRUE(refreshed);
  EXPECT_NE(refreshed->refresh_token(), login.refresh_token());
  control_.clock.Advance(9min);
  EXPECT_TRUE(WhoAmI(refreshed->access().token()));
  EXPECT_EQ(ReasonOf(WhoAmI(login.access().token())), "token.expired");
  EXPECT_TRUE(Refresh(refreshed->refresh_token()));
}

TEST_F(SessionsTest, ReuseOfAnyOldRefreshTokenEndsTheSessionAtOnce) {
  const auto login = control_.SignInOwner();
  const auto second = Refresh(login.refresh_token()).value();
  const auto third = Refresh(second.refresh_token()).value();
  EXPECT_EQ(ReasonOf(Refresh(login.refresh_token())), "session.reused");
  EXPECT_EQ(ReasonOf(WhoAmI(third.access().token())), "token.revoked");
  EXPECT_EQ(ReasonOf(Refresh(third.refresh_token())), "session.ended");
  control_.Restart();
  EXPECT_EQ(ReasonOf(WhoAmI(third.access().token())), "token.revoked") << "after a restart too";
}

TEST_F(SessionsTest, ConcurrentRefreshesGiveOnePair) {
  const auto login = control_.SignInOwner();
  std::atomic<int> given = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      if (Refresh(login.refresh_token())) ++given;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(given, 1);
}

TEST_F(SessionsTest, SessionsLiveByUse) {
  auto token = control_.SignInOwner().refresh_token();
  for (int day = 0; day < 80; day += 20) {
    control_.clock.Advance(24h * 20);
    ASSERT_TRUE(control_.plane->Maintain());
    token = Refresh(token).value().refresh_token();
  }
  control_.clock.Advance(24h * 30);
  EXPECT_EQ(ReasonOf(Refresh(token)), "session.ended");
}

TEST_F(SessionsTest, LogoutEndsAndForgives) {
  const auto login = control_.SignInOwner();
  v1::LogoutRequest request;
  request.set_refresh_token(login.refresh_token());
  EXPECT_TRUE(control_.Call<v1::LogoutResponse>("AuthService.Logout", request));
  EXPECT_EQ(ReasonOf(WhoAmI(login.access().token())), "token.revoked");
  EXPECT_EQ(ReasonOf(Refresh(login.refresh_token())), "session.ended");
  EXPECT_TRUE(control_.Call<v1::LogoutResponse>("AuthService.Logout", request)) << "twice is fine";
}

TEST_F(SessionsTest, KeysSignInUntilRevoked) {
  const auto owner = control_.SignInOwner();
  const auto key = CreateKey(owner.access().token());
  EXPECT_TRUE(key.secret().starts_with("exp_user_"));
  EXPECT_TRUE(key.secret().starts_with(key.key().hint()));
  EXPECT_EQ(key.key().hint().size(), std::string("exp_user_").size() + 4);
  const auto login = LoginWithKey(key.secret());
  ASSERT_TRUE(login) << login.error().message;
  const auto keys = control_.Call<v1::ListKeysResponse>(
      "KeyService.ListKeys", v1::ListKeysRequest(), login->access().token());
  ASSERT_EQ(keys->keys_size(), 1);
  EXPECT_TRUE(keys->keys(0).has_last_used_at());
  EXPECT_EQ(keys->ShortDebugString().find(key.secret()), std::string::npos);

  ASSERT_TRUE(RevokeKey(owner.access().token(), key.key().key_id()));
  EXPECT_EQ(ReasonOf(LoginWithKey(key.secret())), "auth.credentials");
  EXPECT_EQ(ReasonOf(WhoAmI(login->access().token())), "token.revoked");
  EXPECT_EQ(ReasonOf(Refresh(login->refresh_token())), "session.ended");
  EXPECT_TRUE(WhoAmI(owner.access().token())) << "a session that the key did not make";
  EXPECT_TRUE(RevokeKey(owner.access().token(), key.key().key_id())) << "idempotent";
}

TEST_F(SessionsTest, KeysOfOthersDoNotExist) {
  const auto owner = control_.SignInOwner();
  const auto member = control_.AddMember(owner.identity().organisation_id(), "Member");
  const auto key = CreateKey(member.access().token());
  EXPECT_EQ(ReasonOf(RevokeKey(owner.access().token(), key.key().key_id())), "key.not_found");
  EXPECT_EQ(control_
                .Call<v1::ListKeysResponse>("KeyService.ListKeys", v1::ListKeysRequest(),
                                            owner.access().token())
                ->keys_size(),
            0);
  EXPECT_TRUE(LoginWithKey(key.secret()));
}

TEST_F(SessionsTest, KeysAreBounded) {
  const auto token = control_.SignInOwner().access().token();
  std::string first;
  for (int i = 0; i < 50; ++i) {
    const auto key = CreateKey(token, "key " + std::to_string(i));
    if (i == 0) first = key.key().key_id();
  }
  v1::CreateKeyRequest request;
  request.set_name("one too many");
  EXPECT_EQ(ReasonOf(control_.Call<v1::CreateKeyResponse>("KeyService.CreateKey", request, token)),
            "key.too_many");
  ASSERT_TRUE(RevokeKey(token, first));
  EXPECT_TRUE(control_.Call<v1::CreateKeyResponse>("KeyService.CreateKey", request, token));
}

TEST_F(SessionsTest, OnlyMembersGetIntoAnOrganisation) {
  const auto owner = control_.SignInOwner();
  const auto other = control_.AddOrganisation("Other");
  const auto key = CreateKey(owner.access().token());
  EXPECT_EQ(ReasonOf(LoginWithKey(key.secret(), other.identity().organisation_id())),
            "auth.not_a_member");
  EXPECT_EQ(ReasonOf(Refresh(owner.refresh_token(), other.identity().organisation_id())),
            "auth.not_a_member");
  EXPECT_EQ(ReasonOf(LoginWithKey(key.secret(), "not-an-id")), "control.id");
  EXPECT_TRUE(LoginWithKey(key.secret(), owner.identity().organisation_id()));
  EXPECT_TRUE(Refresh(owner.refresh_token())) << "the refused switch did not use the token up";
}

TEST_F(SessionsTest, RefusesWhatIsNoCredential) {
  control_.SignInOwner();
  for (const std::string& key :
       {std::string(), std::string("exp_user_"), std::string("exp_user_short"),
        "exp_link_" + std::string(43, 'A'), "exp_user_" + std::string(43, 'A'),
        "exp_user_" + std::string(43, '\''), std::string(60'000, 'x')}) {
    EXPECT_EQ(ReasonOf(LoginWithKey(key)), "auth.credentials") << key.substr(0, 60);
  }
  EXPECT_EQ(ReasonOf(control_.Call<v1::LoginResponse>("AuthService.Login", v1::LoginRequest())),
            "auth.no_credential");
  for (const std::string& token :
       {std::string(), std::string("exp_session_"), std::string(77, 'x'),
        "exp_session_" + std::string(65, 'A'), "exp_session_" + std::string(65, '!')}) {
    EXPECT_EQ(ReasonOf(Refresh(token)), "session.ended") << token;
  }
}

TEST_F(SessionsTest, FailuresAreLimitedPerPeer) {
  control_.SignInOwner();
  v1::LoginRequest request;
  request.set_api_key("exp_user_" + std::string(43, 'A'));
  std::string reason;
  for (int i = 0; i < 21; ++i) {
    reason = ReasonOf(control_.Call<v1::LoginResponse>("AuthService.Login", request, "",
                                                       "198.51.100.9:" + std::to_string(1000 + i)));
  }
  EXPECT_EQ(reason, "auth.too_many_failures");
  EXPECT_EQ(ReasonOf(control_.Call<v1::LoginResponse>("AuthService.Login", request, "",
                                                      "198.51.100.10:1")),
            "auth.credentials");
  control_.clock.Advance(1min);
  EXPECT_EQ(ReasonOf(control_.Call<v1::LoginResponse>("AuthService.Login", request, "",
                                                      "198.51.100.9:1")),
            "auth.credentials");
}

TEST_F(SessionsTest, EveryChangeIsInTheAuditTrail) {
  const auto login = control_.SignInOwner();
  const auto key = CreateKey(login.access().token());
  ASSERT_TRUE(Refresh(login.refresh_token()));
  ASSERT_TRUE(RevokeKey(login.access().token(), key.key().key_id()));
  std::vector<std::string> actions;
  const auto entries = control_.store->Audit(login.identity().organisation_id(), 100).value();
  for (const auto& entry : entries) {
    actions.push_back(entry.action);
    EXPECT_EQ(entry.detail.find("exp_user_"), std::string::npos) << "secrets stay out";
    if (entry.actor_kind == "user") {
      EXPECT_EQ(entry.actor_id, login.identity().user_id());
      EXPECT_EQ(entry.request_id, "request-1");
    }
  }
  std::ranges::sort(actions);
  EXPECT_EQ(actions,
            (std::vector<std::string>{"key.create", "key.revoke", "organisation.create",
                                      "session.refresh", "session.start", "sign_in_link.create"}));
}

TEST(RefreshToken, ParsesItsOwnFormOnly) {
  const RefreshToken token = RefreshToken::New();
  const auto parsed = RefreshToken::Parse(token.Text());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->Hashes().selector, token.Hashes().selector);
  EXPECT_EQ(parsed->Hashes().secret, token.Hashes().secret);
  EXPECT_EQ(token.Next().selector, token.selector);
  EXPECT_NE(token.Next().secret, token.secret);
  EXPECT_FALSE(RefreshToken::Parse(token.Text() + "A"));
  EXPECT_FALSE(RefreshToken::Parse(token.Text().substr(1)));
}

}  // namespace
}  // namespace expanse::control
