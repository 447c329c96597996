// The other planes' view of control: keys and revocations over a real connection.
#include <gtest/gtest.h>

#include "control/control_testing.h"
#include "net/connect_client.h"
#include "net/control_trust_source.h"
#include "net/http_server.h"
#include "net/jwks_authenticator.h"

namespace expanse::control {
namespace {

class TrustTest : public testing::Test {
 protected:
  TrustTest() {
    // A proxy of the machine that runs the tests has no business between the two.
    ::setenv("no_proxy", "127.0.0.1", 1);
    ::setenv("NO_PROXY", "127.0.0.1", 1);
    net::HttpServerOptions options;
    options.name = "control";
    options.address = "127.0.0.1";
    server_ = std::move(*net::HttpServer::Start(
        options,
        [this](const net::HttpRequest& request) {
          if (request.path != "/.well-known/jwks.json") return control_.router->Handle(request);
          net::HttpResponse response;
          response.body = oversized_ ? std::string(1U << 20, ' ') : control_.plane->Jwks();
          return response;
        },
        metrics_));
    url_ = "http://127.0.0.1:" + std::to_string(server_->port());
    net::ConnectClientOptions client;
    client.base_url = url_;
    client.max_attempts = 1;
    client_ = std::move(*net::ConnectClient::Create(client));
  }
  ~TrustTest() override { server_->Drain(std::chrono::seconds(2)); }

  std::unique_ptr<net::ControlTrustSource> Source(std::string_view secret) {
    return std::make_unique<net::ControlTrustSource>(
        net::ControlTrustOptions{
            .control_url = url_, .plane = "data", .plane_secret = std::string(secret)},
        *client_, control_.clock);
  }

  ControlHarness control_;
  base::MetricRegistry metrics_;
  std::atomic<bool> oversized_ = false;
  std::unique_ptr<net::HttpServer> server_;
  std::string url_;
  std::unique_ptr<net::ConnectClient> client_;
};

TEST_F(TrustTest, AcceptsControlsTokensUntilTheyAreRevoked) {
  const auto owner = control_.SignInOwner();
  const auto compute = control_.Install(owner.access().token());
  const auto source = Source(kDataPlaneSecret);
  net::JwksAuthenticator authenticator({}, *source, control_.clock, metrics_);
  const auto fetched = authenticator.Refresh();
  ASSERT_TRUE(fetched) << fetched.error().message;
  const auto user = authenticator.Authenticate(owner.access().token());
  ASSERT_TRUE(user);
  EXPECT_EQ(user->organisation_id, owner.identity().organisation_id());
  EXPECT_EQ(authenticator.Authenticate(compute.token)->subject, compute.id);

  v1::RevokeComputeRequest revoke;
  revoke.set_compute_id(compute.id);
  ASSERT_TRUE(control_.Call<v1::RevokeComputeResponse>("ComputeService.RevokeCompute", revoke,
                                                       owner.access().token()));
  ASSERT_TRUE(authenticator.Refresh());
  EXPECT_EQ(ReasonOf(authenticator.Authenticate(compute.token)), "token.revoked");
  EXPECT_TRUE(authenticator.Authenticate(owner.access().token()));

  server_->Drain(std::chrono::seconds(2));
  EXPECT_FALSE(authenticator.Refresh());
  EXPECT_EQ(ReasonOf(authenticator.Authenticate(compute.token)), "token.revoked");
  EXPECT_TRUE(authenticator.Authenticate(owner.access().token())) << "control is away";
}

TEST_F(TrustTest, RenewsThePlanesTokenBeforeItExpires) {
  const auto source = Source(kDataPlaneSecret);
  const std::string first = source->PlaneToken().value();
  EXPECT_EQ(source->PlaneToken().value(), first);
  control_.clock.Advance(std::chrono::minutes(9));
  EXPECT_NE(source->PlaneToken().value(), first);
}

TEST_F(TrustTest, GetsANewTokenWhenControlRefusesTheOldOne) {
  const auto source = Source(kDataPlaneSecret);
  ASSERT_TRUE(source->FetchRevocations());
  // Control comes back with other signing keys.
  control_.options.keys.directory = base::JoinPath(control_.directory.path(), "other-keys");
  control_.Restart();
  EXPECT_TRUE(source->FetchRevocations());
}

TEST_F(TrustTest, SaysWhyItCannotFetch) {
  EXPECT_EQ(ReasonOf(Source("not the secret")->FetchRevocations()), "plane.secret");
  const auto source = Source(kDataPlaneSecret);
  oversized_ = true;
  EXPECT_EQ(ReasonOf(source->FetchJwks()), "fetch.too_large");
  EXPECT_EQ(ReasonOf(net::FetchText(url_ + "/nothing/here")), "fetch.status");
  EXPECT_EQ(ReasonOf(net::FetchText("file:///etc/hostname")), "fetch.unreachable");
  server_->Drain(std::chrono::seconds(2));
  EXPECT_EQ(ReasonOf(source->FetchJwks()), "fetch.unreachable");
}

}  // namespace
}  // namespace expanse::control
