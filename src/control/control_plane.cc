#include "control/control_plane.h"

#include "base/crypto.h"
#include "control/auth_service.h"
#include "control/compute_service.h"
#include "control/discovery_service.h"
#include "control/key_service.h"
#include "control/local_authenticator.h"
#include "control/permissions.h"
#include "control/secrets.h"
#include "control/service_deps.h"

namespace expanse::control {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

// Long enough that an answer can still say "used" or "expired" rather than "not known".
constexpr std::chrono::hours kKeepWhatIsOver{30 * 24};
constexpr std::size_t kDropAtATime = 500;

Status CheckOptions(ControlOptions& options) {
  EXPANSE_ASSIGN_OR_RETURN(options.public_url, CheckPublicUrl(options.public_url));
  for (std::string* url :
       {&options.data_public_url, &options.intelligence_public_url, &options.console_url}) {
    if (url->empty()) continue;
    EXPANSE_ASSIGN_OR_RETURN(*url, CheckPublicUrl(*url));
  }
  EXPANSE_RETURN_IF_ERROR(CheckName(options.organisation_name, "control.organisation_name",
                                    "control.organisation_name"));
  EXPANSE_RETURN_IF_ERROR(
      CheckName(options.owner_name, "control.owner_name", "control.owner_name"));
  for (const std::string& name : options.owner_submit_users) {
    EXPANSE_RETURN_IF_ERROR(
        CheckName(name, "control.owner_submit_users", "control.owner_submit_users"));
  }
  // A retired key stays published as long as a token that it signed may live.
  options.keys.keep_after = std::max(options.keys.keep_after,
                                     2 * (options.access_token_life + options.tokens.clock_skew));
  return {};
}

store::AuditEntry SystemAudit(base::WallTime now, std::string organisation, std::string action,
                              std::string subject) {
  store::AuditEntry entry;
  entry.at = now;
  entry.organisation_id = std::move(organisation);
  entry.actor_kind = "system";
  entry.action = std::move(action);
  entry.subject = std::move(subject);
  return entry;
}

}  // namespace

struct ControlPlane::Impl {
  Impl(ControlOptions given, std::unique_ptr<net::KeyRing> ring,
       store::IdentityStore& identity_store, base::Clock& a_clock, base::MetricRegistry& metrics)
      : options(std::move(given)),
        store(identity_store),
        clock(a_clock),
        keys(std::move(ring)),
        signer(options.tokens, *keys, clock),
        revocations(store, 2 * (options.access_token_life + options.tokens.clock_skew)),
        limiter(clock),
        authenticator(options.tokens, *keys, revocations, clock),
        deps{options, store, clock, signer, revocations, limiter, metrics},
        auth(deps),
        personal_keys(deps),
        computes(deps),
        discovery(deps) {}

  const ControlOptions options;
  store::IdentityStore& store;
  base::Clock& clock;
  const std::unique_ptr<net::KeyRing> keys;
  const net::TokenSigner signer;
  RevocationList revocations;
  FailureLimiter limiter;
  LocalAuthenticator authenticator;
  const ServiceDeps deps;
  AuthService auth;
  KeyService personal_keys;
  ComputeService computes;
  DiscoveryService discovery;
};

ControlPlane::ControlPlane(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlPlane::~ControlPlane() = default;

Result<std::unique_ptr<ControlPlane>> ControlPlane::Create(ControlOptions options,
                                                           store::IdentityStore& store,
                                                           base::Clock& clock,
                                                           base::MetricRegistry& metrics) {
  EXPANSE_RETURN_IF_ERROR(CheckOptions(options));
  EXPANSE_ASSIGN_OR_RETURN(auto keys, net::KeyRing::Open(options.keys, clock));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(keys), store, clock, metrics);
  EXPANSE_RETURN_IF_ERROR(impl->revocations.Load(clock.Now()));
  return std::unique_ptr<ControlPlane>(new ControlPlane(std::move(impl)));
}

void ControlPlane::AddMethods(net::ConnectRouter& router) {
  impl_->auth.AddTo(router);
  impl_->personal_keys.AddTo(router);
  impl_->computes.AddTo(router);
  impl_->discovery.AddTo(router);
}

net::Authenticator& ControlPlane::authenticator() { return impl_->authenticator; }

std::string ControlPlane::Jwks() const { return impl_->keys->Jwks(); }

Result<std::optional<std::string>> ControlPlane::EnsureFirstOrganisation() {
  EXPANSE_ASSIGN_OR_RETURN(const bool there, impl_->store.HasOrganisation());
  if (there) return std::nullopt;
  const base::WallTime now = impl_->clock.Now();
  const store::Organisation organisation{base::NewUuid(now), impl_->options.organisation_name, now};
  const store::User owner{.id = base::NewUuid(now),
                          .name = impl_->options.owner_name,
                          .email = {},
                          .submit_users = impl_->options.owner_submit_users,
                          .created_at = now};
  const auto created = impl_->store.CreateOrganisation(
      organisation, PresetRoles(organisation.id, now), owner, /*only_first=*/true,
      SystemAudit(now, organisation.id, "organisation.create", organisation.id));
  if (!created && created.error().reason == "identity.not_first") return std::nullopt;
  EXPANSE_RETURN_IF_ERROR(created);
  EXPANSE_ASSIGN_OR_RETURN(std::string link, NewSignInLink(owner.id));
  return link;
}

Result<std::string> ControlPlane::NewSignInLink(std::string_view user_id) {
  std::string organisation;
  std::string user(user_id);
  if (user.empty()) {
    EXPANSE_ASSIGN_OR_RETURN(const auto owners, impl_->store.Owners());
    if (!owners.empty()) {
      user = owners.front().user.id;
      organisation = owners.front().organisation.id;
    }
  } else {
    EXPANSE_ASSIGN_OR_RETURN(const auto member, impl_->store.FindMember(user, ""));
    user = member ? user : std::string();
    organisation = member ? member->organisation.id : std::string();
  }
  if (user.empty())
    return Fail(Code::kNotFound, "identity.user_not_found", "there is no such user");
  const base::WallTime now = impl_->clock.Now();
  const std::string secret = base::NewSecret(kSignInLinkPrefix);
  EXPANSE_RETURN_IF_ERROR(impl_->store.CreateSignInLink(
      {base::Sha256Hex(secret), user, now + impl_->options.sign_in_link_life},
      SystemAudit(now, organisation, "sign_in_link.create", user)));
  return impl_->options.public_url + "/sign-in#" + secret;
}

Status ControlPlane::Maintain() {
  EXPANSE_RETURN_IF_ERROR(impl_->keys->Maintain());
  const base::WallTime now = impl_->clock.Now();
  EXPANSE_RETURN_IF_ERROR(impl_->revocations.Prune(now));
  // What is left over waits for the next call.
  if (auto dropped = impl_->store.DropOverBefore(now - kKeepWhatIsOver, kDropAtATime); !dropped) {
    return std::unexpected(std::move(dropped).error().With("forgetting ended sessions and tokens"));
  }
  return {};
}

}  // namespace expanse::control
