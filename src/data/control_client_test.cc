#include "data/control_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/control/v1/compute_service.pb.h"

namespace expanse::data {
namespace {

using base::Code;
namespace control = ::expanse::control::v1;

// Plays the control plane; the test keeps a pointer.
class PaperConnectClient final : public net::ConnectClient {
 public:
  explicit PaperConnectClient(base::Clock& clock) : clock_(clock) {}
  base::Status CallErased(std::string_view method, const google::protobuf::Message& request,
                          google::protobuf::Message* response,
                          const net::CallOptions& options) override {
    calls.emplace_back(method.substr(method.rfind('.') + 1));
    if (method.ends_with("MintPlaneToken")) return Mint(request, response);
    EXPECT_EQ(method, "expanse.control.v1.ComputeService.BurnInstallToken");
    if (options.bearer != "token-" + std::to_string(minted) || refuse_tokens > 0) {
      --refuse_tokens;
      return base::Fail(Code::kUnauthenticated, "token.signature", "unknown key");
    }
    if (burn_error) return std::unexpected(*burn_error);
    const auto& burn = static_cast<const control::BurnInstallTokenRequest&>(request);
    auto* out = static_cast<control::BurnInstallTokenResponse*>(response);
    out->set_compute_id("for " + burn.install_token());
    out->set_compute_name("lab");
    out->set_organisation_id("org-1");
    out->set_type(burn.type());
    out->set_credential("exp_compute_x");
    return {};
  }

  std::vector<std::string> calls;
  std::optional<base::Error> burn_error;
  std::optional<base::Error> mint_error;
  int refuse_tokens = 0;
  int minted = 0;

 private:
  base::Status Mint(const google::protobuf::Message& request, google::protobuf::Message* response) {
    const auto& mint = static_cast<const control::MintPlaneTokenRequest&>(request);
    EXPECT_EQ(mint.plane(), "data");
    EXPECT_EQ(mint.secret(), "plane-secret");
    if (mint_error) return std::unexpected(*mint_error);
    auto* access = static_cast<control::MintPlaneTokenResponse*>(response)->mutable_access();
    access->set_token("token-" + std::to_string(++minted));
    access->mutable_expires_at()->set_seconds(base::ToMicros(clock_.Now()) / 1'000'000 + 600);
    return {};
  }
  base::Clock& clock_;
};

class ControlClientTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  PaperConnectClient* paper_ = nullptr;
  std::unique_ptr<ControlClient> client_ = [this] {
    auto paper = std::make_unique<PaperConnectClient>(clock_);
    paper_ = paper.get();
    return CreateControlClient(std::move(paper), "plane-secret", clock_);
  }();
  using Calls = std::vector<std::string>;
};

TEST_F(ControlClientTest, SignsInOnceAndBurns) {
  const auto first = client_->BurnInstallToken("t1", evidence::SourceType::kSlurm);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->compute_id, "for t1");
  EXPECT_EQ(first->type, evidence::SourceType::kSlurm);
  EXPECT_EQ(first->credential, "exp_compute_x");
  ASSERT_TRUE(client_->BurnInstallToken("t2", evidence::SourceType::kHost));
  EXPECT_EQ(paper_->calls, (Calls{"MintPlaneToken", "BurnInstallToken", "BurnInstallToken"}));
}

TEST_F(ControlClientTest, SignsInAgainWhenItsTokenEnds) {
  ASSERT_TRUE(client_->BurnInstallToken("t1", evidence::SourceType::kHost));
  clock_.Advance(std::chrono::seconds(599));
  ASSERT_TRUE(client_->BurnInstallToken("t2", evidence::SourceType::kHost));
  EXPECT_EQ(paper_->minted, 2);
}

TEST_F(ControlClientTest, TriesOnceMoreWhenItsTokenIsRefused) {
  paper_->refuse_tokens = 1;
  EXPECT_TRUE(client_->BurnInstallToken("t1", evidence::SourceType::kHost));
  EXPECT_EQ(paper_->minted, 2);
  paper_->refuse_tokens = 2;
  EXPECT_EQ(client_->BurnInstallToken("t1", evidence::SourceType::kHost).error().reason,
            "token.signature");
}

TEST_F(ControlClientTest, TriesNoSecondTimeWhenTheInstallTokenIsRefused) {
  paper_->burn_error = base::Error{Code::kFailedPrecondition, "install_token.used", "used"};
  const auto burned = client_->BurnInstallToken("t1", evidence::SourceType::kHost);
  EXPECT_EQ(burned.error().reason, "install_token.used");
  EXPECT_EQ(paper_->calls, (Calls{"MintPlaneToken", "BurnInstallToken"}));
}

TEST_F(ControlClientTest, SendsNoInstallTokenWhenItCannotSignIn) {
  paper_->mint_error = base::Error{Code::kUnauthenticated, "plane.secret", "wrong secret"};
  EXPECT_FALSE(client_->BurnInstallToken("t1", evidence::SourceType::kHost));
  for (const std::string& call : paper_->calls) EXPECT_EQ(call, "MintPlaneToken");
}

}  // namespace
}  // namespace expanse::data
