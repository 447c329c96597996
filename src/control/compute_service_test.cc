#include "control/compute_service.h"

#include <gtest/gtest.h>

#include "control/compute_state.h"
#include "control/control_testing.h"

namespace expanse::control {
namespace {

using namespace std::chrono_literals;
namespace common = expanse::common::v1;

class ComputeServiceTest : public testing::Test {
 protected:
  ComputeServiceTest() : owner_(control_.SignInOwner()), token_(owner_.access().token()) {}

  base::Result<v1::RegisterComputeResponse> Register(
      const std::string& name, common::SourceType type = common::SOURCE_TYPE_HOST) {
    v1::RegisterComputeRequest request;
    request.set_name(name);
    request.set_type(type);
    return control_.Call<v1::RegisterComputeResponse>("ComputeService.RegisterCompute", request,
                                                      token_);
  }
  v1::Compute Get(const std::string& id) {
    v1::GetComputeRequest request;
    request.set_compute_id(id);
    return control_.Call<v1::GetComputeResponse>("ComputeService.GetCompute", request, NewToken())
        .value()
        .compute();
  }
  // Time passes in these tests; access tokens do not live that long.
  std::string NewToken() { return control_.SignInOwner().access().token(); }

  base::Result<v1::HeartbeatResponse> Beat(const std::string& compute_token,
                                           const std::string& version = "0.1.0") {
    v1::HeartbeatRequest request;
    request.set_daemon_version(version);
    return control_.Call<v1::HeartbeatResponse>("ComputeService.Heartbeat", request, compute_token);
  }
  base::Result<v1::BurnInstallTokenResponse> Burn(const std::string& token, common::SourceType type,
                                                  const std::string& plane = "data") {
    v1::BurnInstallTokenRequest request;
    request.set_install_token(token);
    request.set_type(type);
    return control_.Call<v1::BurnInstallTokenResponse>(
        "ComputeService.BurnInstallToken", request,
        control_.PlaneToken(plane, plane == "data" ? kDataPlaneSecret : kIntelligenceSecret));
  }
  base::Result<v1::MintComputeTokenResponse> Mint(const std::string& id,
                                                  const std::string& credential) {
    v1::MintComputeTokenRequest request;
    request.set_compute_id(id);
    request.set_credential(credential);
    return control_.Call<v1::MintComputeTokenResponse>("AuthService.MintComputeToken", request);
  }
  base::Result<v1::ReissueInstallTokenResponse> Reissue(const std::string& id) {
    v1::ReissueInstallTokenRequest request;
    request.set_compute_id(id);
    return control_.Call<v1::ReissueInstallTokenResponse>("ComputeService.ReissueInstallToken",
                                                          request, NewToken());
  }
  base::Result<v1::RevokeComputeResponse> Revoke(const std::string& id) {
    v1::RevokeComputeRequest request;
    request.set_compute_id(id);
    return control_.Call<v1::RevokeComputeResponse>("ComputeService.RevokeCompute", request,
                                                    NewToken());
  }
  std::vector<std::string> Revocations() {
    const auto list = control_.Call<v1::ListRevocationsResponse>(
        "AuthService.ListRevocations", v1::ListRevocationsRequest(),
        control_.PlaneToken("data", kDataPlaneSecret));
    std::vector<std::string> subjects;
    for (const auto& revocation : list->revocations()) subjects.push_back(revocation.subject());
    return subjects;
  }

  ControlHarness control_;
  v1::LoginResponse owner_;
  std::string token_;
};

TEST_F(ComputeServiceTest, RegistersWithANameOfItsOwnMaking) {
  const auto first = Register("");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->compute().name(), "host-20270115-080000");
  EXPECT_EQ(first->compute().state(), common::COMPUTE_STATE_PENDING);
  EXPECT_EQ(first->control_plane_url(), "https://control.example.org");
  EXPECT_EQ(first->data_plane_url(), "https://data.example.org");
  EXPECT_TRUE(first->install_token().token().starts_with("exp_install_"));
  EXPECT_EQ(first->install_token().expires_at().seconds(), 1'800'000'000 + 3600);
  EXPECT_EQ(Register("")->compute().name(), "host-20270115-080000-2") << "within the same second";
  EXPECT_EQ(Register("", common::SOURCE_TYPE_SLURM)->compute().name(), "slurm-20270115-080000");
}

TEST_F(ComputeServiceTest, RefusesBadNamesAndTypes) {
  struct Case {
    const char* what;
    std::string name;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"too long", std::string(101, 'a'), "compute.name"},
      {"control character", "a\nb", "compute.name"},
      {"escape sequence", "a\x1b[31m", "compute.name"},
      {"delete", "a\x7f", "compute.name"},
      {"C1 control", "a\xc2\x9bz", "compute.name"},
      {"right-to-left override", "a\xe2\x80\xaez", "compute.name"},
      {"NUL", std::string("a\0b", 3), "compute.name"},
      {"leading space", " a", "compute.name"},
      {"only a space", " ", "compute.name"},
      {"as long as allowed", std::string(100, 'a'), "ok"},
      {"other scripts", "Großrechner-東京", "ok"},
      {"markup is text", "<b>&'\"; DROP TABLE compute", "ok"},
  };
  for (const Case& c : cases) EXPECT_EQ(ReasonOf(Register(c.name)), c.reason) << c.what;
  EXPECT_EQ(ReasonOf(Register("Großrechner-東京")), "compute.name_taken");
  EXPECT_EQ(ReasonOf(Register("typeless", common::SOURCE_TYPE_UNSPECIFIED)), "compute.type");
  EXPECT_EQ(ReasonOf(Register("future", static_cast<common::SourceType>(99))), "compute.type");
  v1::RegisterComputeRequest teamed;
  teamed.set_type(common::SOURCE_TYPE_HOST);
  teamed.set_team_id("ops");
  EXPECT_EQ(ReasonOf(control_.Call<v1::RegisterComputeResponse>("ComputeService.RegisterCompute",
                                                                teamed, token_)),
            "team.not_found");
}

TEST_F(ComputeServiceTest, RefusesBadIds) {
  for (const char* id : {"", "x", "00000000-0000-7000-8000-00000000000G", "../../etc/passwd"}) {
    EXPECT_EQ(ReasonOf(Revoke(id)), "control.id") << id;
    EXPECT_EQ(ReasonOf(Reissue(id)), "control.id") << id;
    EXPECT_EQ(ReasonOf(Mint(id, "x")), "control.id") << id;
  }
  EXPECT_EQ(ReasonOf(Revoke("00000000-0000-7000-8000-000000000000")), "compute.not_found");
}

TEST_F(ComputeServiceTest, GoesThroughItsStates) {
  auto compute = control_.Install(token_, "node");
  EXPECT_EQ(Get(compute.id).state(), common::COMPUTE_STATE_PENDING) << "installed, not heard of";
  const auto beat = Beat(compute.token);
  ASSERT_TRUE(beat) << beat.error().message;
  EXPECT_EQ(beat->interval().seconds(), 30);
  EXPECT_EQ(beat->server_time().seconds(), base::ToMicros(control_.clock.Now()) / 1'000'000);
  EXPECT_EQ(Get(compute.id).state(), common::COMPUTE_STATE_ACTIVE);
  EXPECT_EQ(Get(compute.id).daemon_version(), "0.1.0");
  control_.clock.Advance(89s);
  EXPECT_EQ(Get(compute.id).state(), common::COMPUTE_STATE_ACTIVE);
  control_.clock.Advance(1s);
  EXPECT_EQ(Get(compute.id).state(), common::COMPUTE_STATE_DEGRADED);
  control_.clock.Advance(210s);
  EXPECT_EQ(Get(compute.id).state(), common::COMPUTE_STATE_OFFLINE);
  ASSERT_TRUE(Beat(compute.token));
  EXPECT_EQ(Get(compute.id).state(), common::COMPUTE_STATE_ACTIVE) << "back";
  control_.clock.JumpWall(-1h);
  EXPECT_EQ(Get(compute.id).state(), common::COMPUTE_STATE_ACTIVE) << "the clock was set back";
  control_.clock.JumpWall(1h);
  EXPECT_EQ(Revoke(compute.id)->compute().state(), common::COMPUTE_STATE_REVOKED);
  EXPECT_EQ(Get(compute.id).state(), common::COMPUTE_STATE_REVOKED);
}

TEST(ComputeState, FollowsTheThresholds) {
  const base::WallTime now(std::chrono::seconds(1'000'000));
  const StateThresholds thresholds{.degraded_after = 10s, .offline_after = 20s};
  store::Compute compute;
  EXPECT_EQ(StateOf(compute, now, thresholds), ComputeState::kPending);
  compute.last_heartbeat_at = now - 10s + 1us;
  EXPECT_EQ(StateOf(compute, now, thresholds), ComputeState::kActive);
  compute.last_heartbeat_at = now - 10s;
  EXPECT_EQ(StateOf(compute, now, thresholds), ComputeState::kDegraded);
  compute.last_heartbeat_at = now - 20s;
  EXPECT_EQ(StateOf(compute, now, thresholds), ComputeState::kOffline);
  compute.revoked_at = now;
  EXPECT_EQ(StateOf(compute, now, thresholds), ComputeState::kRevoked);
}

TEST_F(ComputeServiceTest, InstallTokenIsReplayedOnlyBeforeTheFirstHeartbeat) {
  const auto registered = Register("node").value();
  const std::string install = registered.install_token().token();
  const auto first = Burn(install, common::SOURCE_TYPE_HOST).value();
  const std::string first_token = control_.ComputeToken(first.compute_id(), first.credential());
  const auto second = Burn(install, common::SOURCE_TYPE_HOST);
  ASSERT_TRUE(second) << "the installer lost the answer";
  EXPECT_NE(second->credential(), first.credential());
  EXPECT_EQ(second->compute_id(), first.compute_id());
  EXPECT_EQ(ReasonOf(Beat(first_token)), "token.revoked");
  EXPECT_EQ(ReasonOf(Mint(first.compute_id(), first.credential())), "compute.credential");
  ASSERT_TRUE(Beat(control_.ComputeToken(second->compute_id(), second->credential())));
  EXPECT_EQ(ReasonOf(Burn(install, common::SOURCE_TYPE_HOST)), "install_token.used");
  EXPECT_TRUE(Mint(second->compute_id(), second->credential())) << "the replay changed nothing";
}

TEST_F(ComputeServiceTest, InstallTokenIsForOneTypeOneHourAndTheDataPlane) {
  const std::string install = Register("node")->install_token().token();
  EXPECT_EQ(ReasonOf(Burn(install, common::SOURCE_TYPE_SLURM)), "install_token.type");
  EXPECT_EQ(ReasonOf(Burn(install, static_cast<common::SourceType>(77))), "compute.type");
  EXPECT_EQ(ReasonOf(Burn(install, common::SOURCE_TYPE_HOST, "intelligence")), "plane.not_data");
  EXPECT_EQ(ReasonOf(Burn("exp_install_" + std::string(43, 'A'), common::SOURCE_TYPE_HOST)),
            "install_token.unknown");
  EXPECT_EQ(ReasonOf(Burn("exp_user_" + std::string(43, 'A'), common::SOURCE_TYPE_HOST)),
            "install_token.unknown");
  EXPECT_EQ(ReasonOf(Burn("", common::SOURCE_TYPE_HOST)), "install_token.unknown");
  control_.clock.Advance(1h - 1s);
  EXPECT_TRUE(Burn(install, common::SOURCE_TYPE_UNSPECIFIED));
  control_.clock.Advance(1s);
  EXPECT_EQ(ReasonOf(Burn(install, common::SOURCE_TYPE_HOST)), "install_token.expired")
      << "retries expire too";
}

TEST_F(ComputeServiceTest, ReissuedTokenReplacesExactlyThatCredential) {
  const auto one = control_.Install(token_, "one");
  const auto two = control_.Install(token_, "two");
  ASSERT_TRUE(Beat(one.token));
  const auto reissued = Reissue(one.id);
  ASSERT_TRUE(reissued) << reissued.error().message;
  EXPECT_EQ(reissued->compute().compute_id(), one.id);
  EXPECT_TRUE(Beat(one.token)) << "until the new token is exchanged";
  const auto burned = control_.Burn(reissued->install_token().token());
  ASSERT_TRUE(burned);
  EXPECT_EQ(burned->compute_id(), one.id);
  EXPECT_EQ(ReasonOf(Beat(one.token)), "token.revoked");
  EXPECT_EQ(ReasonOf(Mint(one.id, one.credential)), "compute.credential");
  EXPECT_TRUE(Beat(control_.ComputeToken(one.id, burned->credential())));
  EXPECT_TRUE(Beat(two.token));
  EXPECT_EQ(Revocations().size(), 1U) << "the old credential, which other planes learn of";
}

TEST_F(ComputeServiceTest, RevokedComputeIsOut) {
  const auto compute = control_.Install(token_, "node");
  ASSERT_TRUE(Revoke(compute.id));
  EXPECT_EQ(ReasonOf(Beat(compute.token)), "token.revoked");
  EXPECT_EQ(ReasonOf(Mint(compute.id, compute.credential)), "compute.credential");
  EXPECT_EQ(ReasonOf(Reissue(compute.id)), "compute.revoked");
  EXPECT_EQ(ReasonOf(control_.Burn(compute.install_token)), "install_token.used");
  const auto revocations = Revocations();
  EXPECT_NE(std::ranges::find(revocations, compute.id), revocations.end());
  EXPECT_TRUE(Revoke(compute.id)) << "idempotent";
  EXPECT_TRUE(Register("node")) << "the name is free again";
}

TEST_F(ComputeServiceTest, RevocationsAreForgottenWhenNoTokenCanCarryThem) {
  const auto compute = control_.Install(token_, "node");
  ASSERT_TRUE(Revoke(compute.id));
  control_.clock.Advance(10min);
  ASSERT_TRUE(control_.plane->Maintain());
  EXPECT_FALSE(Revocations().empty());
  control_.clock.Advance(11min + 1s);
  ASSERT_TRUE(control_.plane->Maintain());
  EXPECT_TRUE(Revocations().empty());
  control_.Restart();
  EXPECT_TRUE(Revocations().empty());
}

TEST_F(ComputeServiceTest, WrongCredentialsDoNotLockOutTheRightOne) {
  const auto good = control_.Install(token_, "good");
  const auto bad = control_.Install(token_, "bad");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ReasonOf(Mint(bad.id, "exp_compute_" + std::string(43, 'A'))), "compute.credential");
  }
  EXPECT_EQ(ReasonOf(Mint(bad.id, bad.credential)), "auth.too_many_failures");
  EXPECT_TRUE(Mint(good.id, good.credential)) << "another compute at the same address";
  EXPECT_EQ(ReasonOf(Mint(good.id, bad.credential)), "compute.credential");
}

TEST_F(ComputeServiceTest, HeartbeatTextIsBounded) {
  const auto compute = control_.Install(token_, "node");
  EXPECT_EQ(ReasonOf(Beat(compute.token, std::string(65, '1'))), "compute.daemon_version");
  EXPECT_EQ(ReasonOf(Beat(compute.token, "1.0\x1b[2J")), "compute.daemon_version");
  EXPECT_TRUE(Beat(compute.token, ""));
}

TEST_F(ComputeServiceTest, ListsWithAndWithoutRevoked) {
  const auto kept = Register("kept")->compute().compute_id();
  const auto gone = Register("gone")->compute().compute_id();
  ASSERT_TRUE(Revoke(gone));
  v1::ListComputesRequest request;
  auto list =
      control_.Call<v1::ListComputesResponse>("ComputeService.ListComputes", request, token_);
  ASSERT_EQ(list->computes_size(), 1);
  EXPECT_EQ(list->computes(0).compute_id(), kept);
  request.set_include_revoked(true);
  list = control_.Call<v1::ListComputesResponse>("ComputeService.ListComputes", request, token_);
  EXPECT_EQ(list->computes_size(), 2);
}

TEST_F(ComputeServiceTest, PlanesNeedTheirOwnSecret) {
  const auto mint = [&](const std::string& plane, std::string_view secret) {
    v1::MintPlaneTokenRequest request;
    request.set_plane(plane);
    request.set_secret(std::string(secret));
    return ReasonOf(
        control_.Call<v1::MintPlaneTokenResponse>("AuthService.MintPlaneToken", request));
  };
  EXPECT_EQ(mint("data", kDataPlaneSecret), "ok");
  EXPECT_EQ(mint("data", kIntelligenceSecret), "plane.secret");
  EXPECT_EQ(mint("intelligence", kDataPlaneSecret), "plane.secret");
  EXPECT_EQ(mint("control", kDataPlaneSecret), "plane.secret");
  EXPECT_EQ(mint("data", ""), "plane.secret");
  EXPECT_EQ(mint("", ""), "plane.secret");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(mint("data", "guess"), "plane.secret");
  EXPECT_EQ(mint("data", kDataPlaneSecret), "ok") << "a neighbour must not lock a plane out";
}

TEST_F(ComputeServiceTest, DiscoveryNamesThePlanes) {
  const auto endpoints = control_.Call<v1::GetEndpointsResponse>("DiscoveryService.GetEndpoints",
                                                                 v1::GetEndpointsRequest());
  ASSERT_TRUE(endpoints);
  EXPECT_EQ(endpoints->control_plane_url(), "https://control.example.org");
  EXPECT_EQ(endpoints->data_plane_url(), "https://data.example.org");
  EXPECT_EQ(endpoints->intelligence_plane_url(), "");
}

}  // namespace
}  // namespace expanse::control
