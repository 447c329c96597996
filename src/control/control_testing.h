// A control plane with a fake clock, a store in a temporary directory and a real router, for tests.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/metrics.h"
#include "base/time.h"
#include "control/control_plane.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/control/v1/compute_service.pb.h"
#include "expanse/control/v1/key_service.pb.h"
#include "net/connect_server.h"
#include "store/identity/sqlite_identity_store.h"

namespace expanse::control {

inline constexpr std::string_view kDataPlaneSecret = "secret of the data plane, long enough for it";
inline constexpr std::string_view kIntelligenceSecret =
    "secret of the intelligence plane, long enough";

// Not thread-safe, but calls may be made from several threads. Aborts the test program when it
// cannot be set up.
class ControlHarness {
 public:
  ControlHarness();

  // Calls a method of package expanse.control.v1 ("AuthService.Login") through the router.
  template <typename Response>
  base::Result<Response> Call(std::string_view method, const google::protobuf::Message& request,
                              std::string_view bearer = {},
                              std::string_view peer = "192.0.2.1:4000") {
    Response response;
    EXPANSE_RETURN_IF_ERROR(CallErased(method, request, &response, bearer, peer));
    return response;
  }
  base::Status CallErased(std::string_view method, const google::protobuf::Message& request,
                          google::protobuf::Message* response, std::string_view bearer,
                          std::string_view peer);

  // Opens everything again on the same files, as a restarted server does.
  void Restart();

  // The first Owner's session, through the sign-in link of the first start.
  v1::LoginResponse SignInOwner();
  // Signs in with a one-time link.
  base::Result<v1::LoginResponse> SignIn(std::string_view link);
  // A new member of the organisation with the role of that name, signed in.
  v1::LoginResponse AddMember(const std::string& organisation_id, const std::string& role);
  // A second organisation; its Owner, signed in.
  v1::LoginResponse AddOrganisation(const std::string& name);

  // The whole way of a compute: registered, installed. `token` is an access token of its own.
  struct InstalledCompute {
    std::string id;
    std::string install_token;
    std::string credential;
    std::string token;
  };
  v1::RegisterComputeResponse Register(const std::string& owner_token,
                                       const std::string& name = {});
  InstalledCompute Install(const std::string& owner_token, const std::string& name = {});
  base::Result<v1::BurnInstallTokenResponse> Burn(const std::string& install_token);
  std::string ComputeToken(const std::string& compute_id, const std::string& credential);
  std::string PlaneToken(const std::string& plane, std::string_view secret);

  base::TempDir directory = base::TempDir::Create().value();
  base::FakeClock clock;
  base::MetricRegistry metrics;
  ControlOptions options;
  std::unique_ptr<store::SqliteIdentityStore> store;
  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<net::ConnectRouter> router;
};

template <typename T>
std::string ReasonOf(const base::Result<T>& result) {
  return result ? "ok" : result.error().reason;
}

}  // namespace expanse::control
