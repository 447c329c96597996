#include "data/install_exchange.h"

#include <gtest/gtest.h>

#include "base/crypto.h"
#include "data/data_testing.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::data {
namespace {

using base::Code;

class InstallExchangeTest : public testing::Test {
 protected:
  base::Result<v1::ExchangeInstallTokenResponse> Exchange(const std::string& token) {
    v1::ExchangeInstallTokenRequest request;
    request.set_install_token(token);
    request.set_type(common::v1::SOURCE_TYPE_HOST);
    return exchange_.Exchange({}, request);
  }
  base::FakeClock clock_;
  base::MetricRegistry metrics_;
  FakeControlClient control_;
  InstallExchange exchange_{DataOptions{.exchanges_per_second = 2}, control_, clock_, metrics_};
  const std::string token_ = base::NewSecret("exp_install_");
};

TEST_F(InstallExchangeTest, RelaysTheTokenAndTheCredential) {
  const auto response = Exchange(token_);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(control_.last_token, token_);
  EXPECT_EQ(control_.last_type, evidence::SourceType::kHost);
  EXPECT_EQ(response->compute_id(), "compute-new");
  EXPECT_EQ(response->compute_name(), "lab");
  EXPECT_EQ(response->organisation_id(), "org-1");
  EXPECT_EQ(response->type(), common::v1::SOURCE_TYPE_HOST);
  EXPECT_EQ(response->credential(), "exp_compute_x");
}

TEST_F(InstallExchangeTest, RefusesOtherSecretsWithoutAskingControl) {
  for (const std::string& wrong : {std::string(), base::NewSecret("exp_user_"), token_ + "x",
                                   token_.substr(0, 20), token_ + "\n"}) {
    const auto response = Exchange(wrong);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().reason, "install_token.malformed");
    EXPECT_EQ(response.error().code, Code::kInvalidArgument);
    if (!wrong.empty()) {
      EXPECT_EQ(response.error().message.find(wrong), std::string::npos)
          << "no secrets in messages";
    }
  }
  EXPECT_EQ(control_.calls, 0);
}

TEST_F(InstallExchangeTest, SaysWhatControlSaysOfTheToken) {
  for (const auto& error :
       {base::Error{Code::kFailedPrecondition, "install_token.used", "used at noon; re-issue it"},
        base::Error{Code::kFailedPrecondition, "install_token.expired", "it was good for an hour"},
        base::Error{Code::kInvalidArgument, "install_token.type", "it is for a slurm compute"},
        base::Error{Code::kUnauthenticated, "install_token.unknown", "no such token"}}) {
    control_.next = std::unexpected(error);
    const auto response = Exchange(token_);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, error.code);
    EXPECT_EQ(response.error().reason, error.reason);
    EXPECT_EQ(response.error().message, error.message);
  }
}

TEST_F(InstallExchangeTest, BlamesNoTokenForAControlPlaneThatFails) {
  for (const auto& error :
       {base::Error{Code::kUnavailable, "client.unreachable", "connection to 10.0.0.7 refused"},
        base::Error{Code::kDeadlineExceeded, "client.timeout", "10 s"},
        base::Error{Code::kUnauthenticated, "token.expired", "the plane's token"},
        base::Error{Code::kPermissionDenied, "access.caller", "not a plane"},
        base::Error{Code::kNotFound, "http.404", "no such path"},
        base::Error{Code::kInternal, "x", "SELECT"}}) {
    control_.next = std::unexpected(error);
    const auto response = Exchange(token_);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kUnavailable);
    EXPECT_EQ(response.error().reason, "control.unreachable");
    EXPECT_EQ(response.error().message.find(error.message), std::string::npos)
        << "inner details stay in the log";
  }
}

TEST_F(InstallExchangeTest, ShieldsControlFromAFlood) {
  int refused = 0;
  for (int i = 0; i < 30; ++i) {
    const auto response = Exchange(token_);
    if (response) continue;
    ++refused;
    EXPECT_EQ(response.error().reason, "install_token.rate");
  }
  EXPECT_EQ(control_.calls, 20);
  EXPECT_EQ(refused, 10);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(Exchange(token_));
}

}  // namespace
}  // namespace expanse::data
