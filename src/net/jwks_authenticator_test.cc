#include "net/jwks_authenticator.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/files.h"

namespace expanse::net {
namespace {

using namespace std::chrono_literals;

// A control plane in memory that can be away.
class FakeTrustSource final : public TrustSource {
 public:
  explicit FakeTrustSource(const KeyRing*& ring) : ring_(ring) {}
  base::Result<std::string> FetchJwks() override {
    ++key_fetches;
    if (away) return base::Fail(base::Code::kUnavailable, "fake.away", "away");
    return ring_->Jwks();
  }
  base::Result<std::vector<std::string>> FetchRevocations() override {
    ++revocation_fetches;
    if (away || revocations_away) return base::Fail(base::Code::kUnavailable, "fake.away", "away");
    const std::lock_guard lock(mutex_);
    return revoked_;
  }
  void Revoke(std::string subject) {
    const std::lock_guard lock(mutex_);
    revoked_.push_back(std::move(subject));
  }

  std::atomic<bool> away = false;
  std::atomic<bool> revocations_away = false;
  std::atomic<int> key_fetches = 0;
  std::atomic<int> revocation_fetches = 0;

 private:
  const KeyRing*& ring_;
  std::mutex mutex_;
  std::vector<std::string> revoked_;
};

class JwksAuthenticatorTest : public testing::Test {
 protected:
  JwksAuthenticatorTest() : first_(OpenRing("first")), ring_(first_.get()), source_(ring_) {}

  std::unique_ptr<KeyRing> OpenRing(const std::string& name) {
    KeyRingOptions options;
    options.directory = base::JoinPath(dir_.path(), name);
    return KeyRing::Open(options, clock_).value();
  }
  std::string Sign(CallerKind kind = CallerKind::kUser) {
    Caller caller;
    caller.kind = kind;
    caller.subject = kind == CallerKind::kUser ? "user-1" : "compute-1";
    caller.organisation_id = "organisation-1";
    caller.session_id = kind == CallerKind::kUser ? "session-1" : "credential-1";
    return TokenSigner({}, *ring_, clock_).Sign(caller, 600s).value().token;
  }
  std::string Reason(const std::string& token) {
    const auto caller = authenticator_.Authenticate(token);
    return caller ? "accepted" : caller.error().reason;
  }

  base::TempDir dir_ = base::TempDir::Create().value();
  base::FakeClock clock_;
  base::MetricRegistry metrics_;
  std::unique_ptr<KeyRing> first_;
  const KeyRing* ring_;
  FakeTrustSource source_;
  JwksAuthenticator authenticator_{{}, source_, clock_, metrics_};
};

TEST_F(JwksAuthenticatorTest, LetsNobodyInBeforeItKnowsKeysAndRevocations) {
  EXPECT_EQ(Reason(Sign()), "trust.not_ready");
  source_.revocations_away = true;
  EXPECT_FALSE(authenticator_.Refresh());
  EXPECT_FALSE(authenticator_.Ready());
  EXPECT_EQ(Reason(Sign()), "trust.not_ready");
  source_.revocations_away = false;
  ASSERT_TRUE(authenticator_.Refresh());
  EXPECT_TRUE(authenticator_.Ready());
  EXPECT_EQ(Reason(Sign()), "accepted");
}

TEST_F(JwksAuthenticatorTest, RefusesRevokedSessionsComputesAndCredentials) {
  ASSERT_TRUE(authenticator_.Refresh());
  const std::string user = Sign();
  const std::string compute = Sign(CallerKind::kCompute);
  source_.Revoke("session-1");
  EXPECT_EQ(Reason(user), "accepted") << "not fetched yet";
  ASSERT_TRUE(authenticator_.Refresh());
  EXPECT_EQ(Reason(user), "token.revoked");
  EXPECT_EQ(Reason(compute), "accepted");
  source_.Revoke("compute-1");
  ASSERT_TRUE(authenticator_.Refresh());
  EXPECT_EQ(Reason(compute), "token.revoked");
}

TEST_F(JwksAuthenticatorTest, KeepsWorkingWhileControlIsAway) {
  source_.Revoke("session-2");
  ASSERT_TRUE(authenticator_.Refresh());
  source_.away = true;
  EXPECT_FALSE(authenticator_.Refresh());
  EXPECT_EQ(Reason(Sign()), "accepted");
}

TEST_F(JwksAuthenticatorTest, FetchesKeysForAnUnknownOneButSeldom) {
  ASSERT_TRUE(authenticator_.Refresh());
  const std::string old_token = Sign();
  const auto second = OpenRing("second");
  ring_ = second.get();
  const std::string new_token = Sign();
  EXPECT_EQ(source_.key_fetches, 1);
  EXPECT_EQ(Reason(new_token), "accepted");
  EXPECT_EQ(source_.key_fetches, 2);
  // The first ring is gone from the document: its tokens cause no more than one fetch per period.
  EXPECT_EQ(Reason(old_token), "token.unknown_key");
  EXPECT_EQ(Reason(old_token), "token.unknown_key");
  EXPECT_EQ(source_.key_fetches, 2);
  clock_.Advance(10s);
  EXPECT_EQ(Reason(old_token), "token.unknown_key");
  EXPECT_EQ(source_.key_fetches, 3);
}

TEST_F(JwksAuthenticatorTest, UnknownKeyWhileControlIsAwayIsNotTheCallersFault) {
  ASSERT_TRUE(authenticator_.Refresh());
  const auto second = OpenRing("second");
  ring_ = second.get();
  source_.away = true;
  const auto caller = authenticator_.Authenticate(Sign());
  ASSERT_FALSE(caller);
  EXPECT_EQ(caller.error().code, base::Code::kUnavailable);
}

TEST_F(JwksAuthenticatorTest, BackgroundThreadPicksUpRevocationsWithinAMinute) {
  const std::string token = Sign();
  authenticator_.Start();
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!authenticator_.Ready() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  ASSERT_EQ(Reason(token), "accepted");
  source_.Revoke("session-1");
  // The thread may not wait on the clock yet, so time moves in small steps until it has fetched.
  auto passed = 0s;
  while (Reason(token) == "accepted" && std::chrono::steady_clock::now() < deadline) {
    const int before = source_.revocation_fetches;
    clock_.Advance(20s);
    passed += 20s;
    while (source_.revocation_fetches == before && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(Reason(token), "token.revoked");
  EXPECT_LE(passed, 60s);
  authenticator_.Stop();
}

}  // namespace
}  // namespace expanse::net
