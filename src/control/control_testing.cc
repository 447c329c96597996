#include "control/control_testing.h"

#include "base/crypto.h"
#include "control/permissions.h"
#include "net/connect_error.h"

namespace expanse::control {

ControlHarness::ControlHarness() {
  options.public_url = "https://control.example.org";
  options.data_public_url = "https://data.example.org";
  options.keys.directory = base::JoinPath(directory.path(), "keys");
  options.owner_submit_users = {"ada"};
  AddPlaneSecret(options, "data", kDataPlaneSecret);
  AddPlaneSecret(options, "intelligence", kIntelligenceSecret);
  Restart();
}

void ControlHarness::Restart() {
  router.reset();
  plane.reset();
  store.reset();
  store = store::SqliteIdentityStore::Open(base::JoinPath(directory.path(), "identity.db")).value();
  plane = ControlPlane::Create(options, *store, clock, metrics).value();
  router =
      std::make_unique<net::ConnectRouter>(net::ConnectOptions(), plane->authenticator(), metrics);
  plane->AddMethods(*router);
}

base::Status ControlHarness::CallErased(std::string_view method,
                                        const google::protobuf::Message& request,
                                        google::protobuf::Message* response,
                                        std::string_view bearer, std::string_view peer) {
  net::HttpRequest http;
  http.method = "POST";
  const std::string full = "expanse.control.v1." + std::string(method);
  http.path = "/" + full;
  http.path[http.path.rfind('.')] = '/';
  http.headers.Set("Content-Type", "application/proto");
  if (!bearer.empty()) http.headers.Set("Authorization", "Bearer " + std::string(bearer));
  http.body = request.SerializeAsString();
  http.peer = peer;
  http.request_id = "request-1";
  http.received = std::chrono::steady_clock::now();
  const net::HttpResponse answer = router->Handle(http);
  if (answer.status != 200) {
    return std::unexpected(
        net::DecodeError(answer.status, answer.headers.Get("Content-Type"), answer.body).error);
  }
  EXPANSE_CHECK(response->ParseFromString(answer.body));
  return {};
}

base::Result<v1::LoginResponse> ControlHarness::SignIn(std::string_view link) {
  v1::LoginRequest request;
  request.set_sign_in_token(std::string(link.substr(link.find('#') + 1)));
  return Call<v1::LoginResponse>("AuthService.Login", request);
}

v1::LoginResponse ControlHarness::SignInOwner() {
  auto link = plane->EnsureFirstOrganisation().value();
  if (!link) link = plane->NewSignInLink().value();
  return SignIn(*link).value();
}

v1::LoginResponse ControlHarness::AddMember(const std::string& organisation_id,
                                            const std::string& role) {
  const auto roles = store->Roles(organisation_id).value();
  const auto at = std::ranges::find(roles, role, &store::Role::name);
  EXPANSE_CHECK(at != roles.end());
  const store::User user{
      base::NewUuid(clock.Now()), role + " of " + organisation_id, "", {}, clock.Now()};
  EXPANSE_CHECK(store->CreateMember(user, organisation_id, at->id, {}).has_value());
  return SignIn(plane->NewSignInLink(user.id).value()).value();
}

v1::LoginResponse ControlHarness::AddOrganisation(const std::string& name) {
  const base::WallTime now = clock.Now();
  const store::Organisation organisation{base::NewUuid(now), name, now};
  const store::User owner{base::NewUuid(now), "owner of " + name, "", {}, now};
  EXPANSE_CHECK(store
                    ->CreateOrganisation(organisation, PresetRoles(organisation.id, now), owner,
                                         /*only_first=*/false, {})
                    .has_value());
  return SignIn(plane->NewSignInLink(owner.id).value()).value();
}

v1::RegisterComputeResponse ControlHarness::Register(const std::string& owner_token,
                                                     const std::string& name) {
  v1::RegisterComputeRequest request;
  request.set_name(name);
  request.set_type(common::v1::SOURCE_TYPE_HOST);
  return Call<v1::RegisterComputeResponse>("ComputeService.RegisterCompute", request, owner_token)
      .value();
}

base::Result<v1::BurnInstallTokenResponse> ControlHarness::Burn(const std::string& install_token) {
  v1::BurnInstallTokenRequest request;
  request.set_install_token(install_token);
  request.set_type(common::v1::SOURCE_TYPE_HOST);
  return Call<v1::BurnInstallTokenResponse>("ComputeService.BurnInstallToken", request,
                                            PlaneToken("data", kDataPlaneSecret));
}

ControlHarness::InstalledCompute ControlHarness::Install(const std::string& owner_token,
                                                         const std::string& name) {
  const auto registered = Register(owner_token, name);
  const auto burned = Burn(registered.install_token().token()).value();
  return {burned.compute_id(), registered.install_token().token(), burned.credential(),
          ComputeToken(burned.compute_id(), burned.credential())};
}

std::string ControlHarness::ComputeToken(const std::string& compute_id,
                                         const std::string& credential) {
  v1::MintComputeTokenRequest request;
  request.set_compute_id(compute_id);
  request.set_credential(credential);
  return Call<v1::MintComputeTokenResponse>("AuthService.MintComputeToken", request)
      .value()
      .access()
      .token();
}

std::string ControlHarness::PlaneToken(const std::string& plane_name, std::string_view secret) {
  v1::MintPlaneTokenRequest request;
  request.set_plane(plane_name);
  request.set_secret(std::string(secret));
  return Call<v1::MintPlaneTokenResponse>("AuthService.MintPlaneToken", request)
      .value()
      .access()
      .token();
}

}  // namespace expanse::control
