// Walks every method of package expanse.control.v1 with every kind of caller against a table of
// expected answers. A method that is missing from the table fails the test.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <set>

#include "base/crypto.h"
#include "base/files.h"
#include "control/control_testing.h"
#include "control/permissions.h"
#include "expanse/common/v1/access.pb.h"
#include "expanse/data/v1/query_service.pb.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"

namespace expanse::control {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using namespace std::chrono_literals;

enum Who : std::size_t {
  kNobody,
  kMember,        // without computes.manage
  kOwner,         // of the organisation that the requests are about
  kStranger,      // the Owner of another organisation
  kCompute,       // a compute of the organisation
  kOtherCompute,  // another one
  kData,          // the data plane
  kIntelligence,  // the intelligence plane
  kLoggedOut,     // an Owner whose session has ended; the token has not expired
  kRevokedCompute,
  kExpired,  // an Owner's token from an hour ago
  kForged,   // a token like an Owner's, signed with somebody else's key
  kWhoCount
};
constexpr std::array<const char*, kWhoCount> kWhoNames = {
    "nobody",     "member",          "owner",      "stranger",
    "compute",    "other compute",   "data plane", "intelligence plane",
    "logged out", "revoked compute", "expired",    "forged"};

// O: ok, U: unauthenticated, P: permission_denied, N: not_found; one letter per Who.
using Answers = std::string_view;

base::Code CodeOf(char answer) {
  switch (answer) {
    case 'U':
      return base::Code::kUnauthenticated;
    case 'P':
      return base::Code::kPermissionDenied;
    case 'N':
      return base::Code::kNotFound;
  }
  ADD_FAILURE() << "a letter that means nothing: " << answer;
  return base::Code::kUnknown;
}

class World {
 public:
  World() {
    const auto owner = control.SignInOwner();
    owner_token_ = owner.access().token();
    v1::CreateKeyRequest key_request;
    key_request.set_name("key");
    key = control.Call<v1::CreateKeyResponse>("KeyService.CreateKey", key_request, owner_token_)
              .value();
    tokens[kExpired] = owner_token_;
    control.clock.Advance(1h);
    owner_token_ = control.SignInOwner().access().token();
    const std::string organisation = owner.identity().organisation_id();
    tokens[kOwner] = owner_token_;
    tokens[kMember] = control.AddMember(organisation, "Member").access().token();
    tokens[kStranger] = control.AddOrganisation("Strangers").access().token();
    compute = control.Install(owner_token_);
    tokens[kCompute] = compute.token;
    tokens[kOtherCompute] = control.Install(owner_token_).token;
    tokens[kData] = control.PlaneToken("data", kDataPlaneSecret);
    tokens[kIntelligence] = control.PlaneToken("intelligence", kIntelligenceSecret);
    const auto gone = control.SignInOwner();
    tokens[kLoggedOut] = gone.access().token();
    v1::LogoutRequest logout;
    logout.set_refresh_token(gone.refresh_token());
    EXPECT_TRUE(control.Call<v1::LogoutResponse>("AuthService.Logout", logout));
    const auto revoked = control.Install(owner_token_);
    tokens[kRevokedCompute] = revoked.token;
    v1::RevokeComputeRequest revoke;
    revoke.set_compute_id(revoked.id);
    EXPECT_TRUE(control.Call<v1::RevokeComputeResponse>("ComputeService.RevokeCompute", revoke,
                                                        owner_token_));
    tokens[kForged] = Forge(owner);
  }

  std::string NewRefreshToken() {
    v1::LoginRequest request;
    request.set_api_key(key.secret());
    return control.Call<v1::LoginResponse>("AuthService.Login", request).value().refresh_token();
  }
  std::string NewKeyId() {
    v1::CreateKeyRequest request;
    request.set_name("key");
    const auto made =
        control.Call<v1::CreateKeyResponse>("KeyService.CreateKey", request, owner_token_).value();
    return made.key().key_id();
  }
  v1::RegisterComputeResponse NewCompute() { return control.Register(owner_token_); }

  ControlHarness control;
  v1::CreateKeyResponse key;
  ControlHarness::InstalledCompute compute;
  std::array<std::string, kWhoCount> tokens;

 private:
  std::string Forge(const v1::LoginResponse& owner) {
    net::KeyRingOptions options;
    options.directory = base::JoinPath(control.directory.path(), "forger");
    const auto ring = net::KeyRing::Open(options, control.clock).value();
    net::Caller caller;
    caller.kind = net::CallerKind::kUser;
    caller.subject = owner.identity().user_id();
    caller.organisation_id = owner.identity().organisation_id();
    caller.session_id = base::NewUuid(control.clock.Now());
    caller.permissions = AllPermissions();
    return net::TokenSigner({}, *ring, control.clock).Sign(caller, 600s).value().token;
  }
  std::string owner_token_;
};

struct Row {
  std::function<void(World&, Message&)> fill;
  //         nobody, member, owner, stranger, compute, other, data, intelligence, logged out,
  //         revoked compute, expired, forged
  Answers answers;
};

template <typename Request>
std::function<void(World&, Message&)> Fill(std::function<void(World&, Request&)> fill) {
  return [fill = std::move(fill)](World& world, Message& message) {
    fill(world, dynamic_cast<Request&>(message));
  };
}
void Nothing(World&, Message&) {}

const std::map<std::string, Row>& Table() {
  static const std::map<std::string, Row> table = {
      // Open to everybody: what they are given decides, and here it is always good.
      {"AuthService.Login",
       {Fill<v1::LoginRequest>([](World& w, auto& r) { r.set_api_key(w.key.secret()); }),
        "OOOOOOOOOOOO"}},
      {"AuthService.Refresh",
       {Fill<v1::RefreshRequest>(
            [](World& w, auto& r) { r.set_refresh_token(w.NewRefreshToken()); }),
        "OOOOOOOOOOOO"}},
      {"AuthService.Logout",
       {Fill<v1::LogoutRequest>(
            [](World& w, auto& r) { r.set_refresh_token(w.NewRefreshToken()); }),
        "OOOOOOOOOOOO"}},
      {"AuthService.MintComputeToken",
       {Fill<v1::MintComputeTokenRequest>([](World& w, auto& r) {
          r.set_compute_id(w.compute.id);
          r.set_credential(w.compute.credential);
        }),
        "OOOOOOOOOOOO"}},
      {"AuthService.MintPlaneToken",
       {Fill<v1::MintPlaneTokenRequest>([](World&, auto& r) {
          r.set_plane("data");
          r.set_secret(std::string(kDataPlaneSecret));
        }),
        "OOOOOOOOOOOO"}},
      {"DiscoveryService.GetEndpoints", {Nothing, "OOOOOOOOOOOO"}},
      // Users.
      {"AuthService.WhoAmI", {Nothing, "UOOOPPPPUUUU"}},
      {"KeyService.CreateKey",
       {Fill<v1::CreateKeyRequest>([](World&, auto& r) { r.set_name("mine"); }), "UOOOPPPPUUUU"}},
      {"KeyService.ListKeys", {Nothing, "UOOOPPPPUUUU"}},
      {"KeyService.RevokeKey",  // a key of the Owner's
       {Fill<v1::RevokeKeyRequest>([](World& w, auto& r) { r.set_key_id(w.NewKeyId()); }),
        "UNONPPPPUUUU"}},
      {"ComputeService.RegisterCompute",
       {Fill<v1::RegisterComputeRequest>(
            [](World&, auto& r) { r.set_type(common::v1::SOURCE_TYPE_HOST); }),
        "UPOOPPPPUUUU"}},
      {"ComputeService.ListComputes", {Nothing, "UOOOPPPPUUUU"}},
      {"ComputeService.GetCompute",
       {Fill<v1::GetComputeRequest>([](World& w, auto& r) { r.set_compute_id(w.compute.id); }),
        "UOONPPPPUUUU"}},
      {"ComputeService.RevokeCompute",
       {Fill<v1::RevokeComputeRequest>(
            [](World& w, auto& r) { r.set_compute_id(w.NewCompute().compute().compute_id()); }),
        "UPONPPPPUUUU"}},
      {"ComputeService.ReissueInstallToken",
       {Fill<v1::ReissueInstallTokenRequest>(
            [](World& w, auto& r) { r.set_compute_id(w.NewCompute().compute().compute_id()); }),
        "UPONPPPPUUUU"}},
      // Computes: each speaks for itself alone; the request names none.
      {"ComputeService.Heartbeat", {Nothing, "UPPPOOPPUUUU"}},
      // Planes.
      {"ComputeService.BurnInstallToken",
       {Fill<v1::BurnInstallTokenRequest>(
            [](World& w, auto& r) { r.set_install_token(w.NewCompute().install_token().token()); }),
        "UPPPPPOPUUUU"}},
      {"AuthService.ListRevocations", {Nothing, "UPPPPPOOUUUU"}},
  };
  return table;
}

// Every method of the package, from the .proto files that lie there.
std::vector<const MethodDescriptor*> Methods() {
  std::vector<const MethodDescriptor*> methods;
  const auto names =
      base::ListDirectory(EXPANSE_SOURCE_DIR "/../../api/expanse/control/v1").value();
  for (const std::string& name : names) {
    const FileDescriptor* file =
        DescriptorPool::generated_pool()->FindFileByName("expanse/control/v1/" + name);
    if (file == nullptr) {
      ADD_FAILURE() << name << " is not part of the program";
      continue;
    }
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m)
        methods.push_back(file->service(s)->method(m));
    }
  }
  return methods;
}

std::string NameOf(const MethodDescriptor& method) {
  return method.service()->name() + "." + method.name();
}

std::unique_ptr<Message> NewMessage(const google::protobuf::Descriptor* type) {
  return std::unique_ptr<Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

TEST(Access, TheTableHasEveryMethodAndNoOther) {
  std::set<std::string> declared;
  for (const MethodDescriptor* method : Methods()) declared.insert(NameOf(*method));
  std::set<std::string> listed;
  for (const auto& [name, row] : Table()) {
    listed.insert(name);
    EXPECT_EQ(row.answers.size(), std::size_t{kWhoCount}) << name;
  }
  EXPECT_EQ(listed, declared);
  EXPECT_GE(declared.size(), 18U);
}

TEST(Access, EveryMethodAnswersEveryCallerAsTheTableSays) {
  World world;
  for (const MethodDescriptor* method : Methods()) {
    const std::string name = NameOf(*method);
    const auto row = Table().find(name);
    if (row == Table().end()) continue;  // the test above has failed
    for (std::size_t who = 0; who < kWhoCount; ++who) {
      const auto request = NewMessage(method->input_type());
      const auto response = NewMessage(method->output_type());
      row->second.fill(world, *request);
      const auto status = world.control.CallErased(name, *request, response.get(),
                                                   world.tokens[who], "192.0.2.1:1");
      const char expected = row->second.answers[who];
      if (expected == 'O') {
        EXPECT_TRUE(status) << name << " by " << kWhoNames[who] << ": " << status.error().message;
      } else {
        ASSERT_FALSE(status) << name << " let in " << kWhoNames[who];
        EXPECT_EQ(status.error().code, CodeOf(expected))
            << name << " by " << kWhoNames[who] << ": " << status.error().reason;
      }
    }
  }
}

TEST(Access, StrangersSeeNothingOfOthersInLists) {
  World world;
  const auto computes = world.control.Call<v1::ListComputesResponse>(
      "ComputeService.ListComputes", v1::ListComputesRequest(), world.tokens[kStranger]);
  EXPECT_EQ(computes->computes_size(), 0);
  const auto own = world.control.Call<v1::ListComputesResponse>(
      "ComputeService.ListComputes", v1::ListComputesRequest(), world.tokens[kOwner]);
  EXPECT_EQ(own->computes_size(), 2);
}

TEST(Access, AHeartbeatSpeaksForItsSenderOnly) {
  World world;
  EXPECT_TRUE(world.control.Call<v1::HeartbeatResponse>(
      "ComputeService.Heartbeat", v1::HeartbeatRequest(), world.tokens[kOtherCompute]));
  v1::GetComputeRequest request;
  request.set_compute_id(world.compute.id);
  const auto answer = world.control.Call<v1::GetComputeResponse>("ComputeService.GetCompute",
                                                                 request, world.tokens[kOwner]);
  EXPECT_EQ(answer->compute().state(), common::v1::COMPUTE_STATE_PENDING);
}

TEST(Access, EveryPermissionOfTheContractExists) {
  std::vector<const MethodDescriptor*> methods = Methods();
  // Of the other planes too: control is where permissions are given.
  for (const FileDescriptor* file : {data::v1::ListExecutionsRequest::descriptor()->file(),
                                     intelligence::v1::AnalyseRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m)
        methods.push_back(file->service(s)->method(m));
    }
  }
  const auto& all = AllPermissions();
  for (const MethodDescriptor* method : methods) {
    ASSERT_TRUE(method->options().HasExtension(common::v1::access)) << NameOf(*method);
    const std::string& permission = method->options().GetExtension(common::v1::access).permission();
    if (permission.empty()) continue;
    EXPECT_NE(std::ranges::find(all, permission), all.end()) << permission;
  }
}

TEST(Access, EmptyRequestsNeverBreakAMethod) {
  World world;
  for (const MethodDescriptor* method : Methods()) {
    for (std::size_t who = 0; who < kWhoCount; ++who) {
      const auto request = NewMessage(method->input_type());
      const auto response = NewMessage(method->output_type());
      const auto status =
          world.control.CallErased(NameOf(*method), *request, response.get(), world.tokens[who],
                                   "192.0.2." + std::to_string(who) + ":1");
      if (!status) {
        EXPECT_NE(status.error().code, base::Code::kInternal)
            << NameOf(*method) << ": " << status.error().reason;
        EXPECT_FALSE(status.error().reason.empty()) << NameOf(*method);
      }
    }
  }
}

}  // namespace
}  // namespace expanse::control
