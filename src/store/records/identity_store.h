// What the control plane remembers: organisations, users and roles, keys and sessions, computes
// with their install tokens and credentials, revocations, and who did what. Never workload data.
//
// Secrets come in as hashes (64 hex digits of SHA-256) and never leave. Every change is one
// transaction together with its audit entry. Places kept for later: teams (Compute::team_id), SSO
// (User::email).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "evidence/execution.h"

namespace expanse::store {

struct Organisation {
  std::string id;
  std::string name;
  base::WallTime created_at{};
};

struct Role {
  std::string id;
  std::string organisation_id;
  std::string name;
  bool owner = false;  // the protected role: all permissions, cannot be edited or removed
  std::vector<std::string> permissions;
};

struct User {
  std::string id;
  std::string name;
  std::string email;
  std::vector<std::string> submit_users;  // names under which schedulers know this user
  base::WallTime created_at{};
};

// A user in one of their organisations.
struct Member {
  User user;
  Organisation organisation;
  Role role;
};

struct PersonalKey {
  std::string id;
  std::string user_id;
  std::string name;
  std::string hint;
  base::WallTime created_at{};
  std::optional<base::WallTime> last_used_at;
  std::optional<base::WallTime> revoked_at;
};

struct SignInLink {
  std::string hash;
  std::string user_id;
  base::WallTime expires_at{};
};

struct Session {
  std::string id;
  std::string user_id;
  std::string organisation_id;
  std::string key_id;  // empty: not made with a key
  base::WallTime created_at{};
  base::WallTime expires_at{};
};

// A refresh token in two halves: the selector finds the session and stays, the secret changes each
// time. Who presents a known selector with another secret holds an old token.
struct RefreshHashes {
  std::string selector;
  std::string secret;
};

enum class Rotation : std::uint8_t {
  kDone,
  kReused,   // an old secret: the session has been ended
  kUnknown,  // no live session
};

struct Compute {
  std::string id;
  std::string organisation_id;
  std::string name;
  evidence::SourceType type = evidence::SourceType::kUnspecified;
  std::string team_id;
  std::string daemon_version;
  base::WallTime created_at{};
  std::optional<base::WallTime> last_heartbeat_at;
  std::optional<base::WallTime> revoked_at;
};

struct NewInstallToken {
  std::string id;
  std::string hash;
  base::WallTime expires_at{};
};

struct ComputeCredential {
  std::string id;
  std::string compute_id;
  std::string organisation_id;
  std::string hash;
};

struct InstallExchange {
  std::string token_hash;
  evidence::SourceType type = evidence::SourceType::kUnspecified;  // unspecified: any
  std::string credential_id;                                       // of the credential to make
  std::string credential_hash;
};

struct ExchangedInstall {
  Compute compute;
  std::vector<std::string> replaced_credentials;  // ids; they are revoked now
};

struct ComputeSign {  // of life
  std::string compute_id;
  std::string credential_id;
  std::string daemon_version;
};

struct Revocation {
  std::string subject;  // a session, credential or compute id
  base::WallTime revoked_at{};
};

// Who did what. `at` is also the time of the change itself.
struct AuditEntry {
  base::WallTime at{};
  std::string organisation_id;
  std::string actor_kind;  // "user", "compute", "plane", "anonymous", "system"
  std::string actor_id;
  std::string action;   // "compute.register"
  std::string subject;  // id of what was changed
  std::string detail;   // a name or a reason; never a secret
  std::string peer;
  std::string request_id;
};

// Thread-safe; blocks on disk. Errors are those of the database (store.*) besides what is said
// below. Every backend passes identity_store_contract.h.
class IdentityStore {
 public:
  virtual ~IdentityStore() = default;

  // --- Organisations and people.
  // Makes an organisation with its roles and a first member, who gets `roles[0]`. With `only_first`
  // fails with identity.not_first if there is an organisation already.
  virtual base::Status CreateOrganisation(const Organisation& organisation,
                                          std::span<const Role> roles, const User& owner,
                                          bool only_first, const AuditEntry& audit) = 0;
  // Adds a user, and makes them a member. Fails with identity.role_not_found.
  virtual base::Status CreateMember(const User& user, std::string_view organisation_id,
                                    std::string_view role_id, const AuditEntry& audit) = 0;
  virtual base::Result<bool> HasOrganisation() = 0;
  virtual base::Result<std::vector<Role>> Roles(std::string_view organisation_id) = 0;
  // The member; with an empty organisation, in the first one that the user joined. Nothing if the
  // user is not in it.
  virtual base::Result<std::optional<Member>> FindMember(std::string_view user_id,
                                                         std::string_view organisation_id) = 0;
  // Members with the Owner role of any organisation, first come first.
  virtual base::Result<std::vector<Member>> Owners() = 0;

  // --- Personal keys.
  virtual base::Status CreateKey(const PersonalKey& key, std::string_view hash,
                                 const AuditEntry& audit) = 0;
  // Newest first, revoked ones included.
  virtual base::Result<std::vector<PersonalKey>> Keys(std::string_view user_id) = 0;
  // A key that is not revoked.
  virtual base::Result<std::optional<PersonalKey>> FindKey(std::string_view hash) = 0;
  // Revokes the user's key and ends the sessions that were made with it; their ids. Idempotent.
  // Fails with key.not_found, also for a key of somebody else.
  virtual base::Result<std::vector<std::string>> RevokeKey(std::string_view user_id,
                                                           std::string_view key_id,
                                                           const AuditEntry& audit) = 0;

  // --- Sign-in links and sessions.
  virtual base::Status CreateSignInLink(const SignInLink& link, const AuditEntry& audit) = 0;
  // A link that is neither used nor expired.
  virtual base::Result<std::optional<SignInLink>> FindSignInLink(std::string_view hash,
                                                                 base::WallTime now) = 0;
  // Starts a session on the strength of a key (session.key_id) or, if `link_hash` is not empty, of
  // a sign-in link, which is used up. Fails with session.credential if that was revoked or used
  // since.
  virtual base::Status StartSession(const Session& session, const RefreshHashes& refresh,
                                    std::string_view link_hash, const AuditEntry& audit) = 0;
  // The live session of a selector, whatever the secret.
  virtual base::Result<std::optional<Session>> FindSession(std::string_view selector_hash,
                                                           base::WallTime now) = 0;
  // Replaces the secret if `presented` holds the current one, and takes organisation and expiry
  // from `session`. An old secret ends the session and revokes it, in the same transaction.
  virtual base::Result<Rotation> RotateSession(const Session& session,
                                               const RefreshHashes& presented,
                                               std::string_view new_secret_hash,
                                               const AuditEntry& audit) = 0;
  // Ends and revokes the session; false if it had ended before.
  virtual base::Result<bool> EndSession(std::string_view session_id, const AuditEntry& audit) = 0;

  // --- Computes.
  // Fails with compute.name_taken if an unrevoked compute of the organisation has the name.
  virtual base::Status RegisterCompute(const Compute& compute, const NewInstallToken& token,
                                       const AuditEntry& audit) = 0;
  // By creation, newest first.
  virtual base::Result<std::vector<Compute>> Computes(std::string_view organisation_id,
                                                      bool include_revoked) = 0;
  // Fails with compute.not_found, also for a compute of another organisation.
  virtual base::Result<Compute> GetCompute(std::string_view organisation_id,
                                           std::string_view compute_id) = 0;
  // Revokes the compute, its credential and its install tokens. Idempotent; the first time stays.
  virtual base::Result<Compute> RevokeCompute(std::string_view organisation_id,
                                              std::string_view compute_id,
                                              const AuditEntry& audit) = 0;
  // Replaces the compute's install tokens by a new one; the credential stays until the exchange.
  // Fails with compute.not_found, compute.revoked.
  virtual base::Result<Compute> ReissueInstallToken(std::string_view organisation_id,
                                                    std::string_view compute_id,
                                                    const NewInstallToken& token,
                                                    const AuditEntry& audit) = 0;
  // Burns the token and makes the compute's credential, replacing the one before. May be repeated
  // until the first sign of life of that credential. Fails with install_token.unknown, .used,
  // .expired, .type.
  virtual base::Result<ExchangedInstall> ExchangeInstallToken(const InstallExchange& exchange,
                                                              const AuditEntry& audit) = 0;
  // The credential that is valid now; nothing for an unknown, revoked or never installed compute.
  virtual base::Result<std::optional<ComputeCredential>> CurrentCredential(
      std::string_view compute_id) = 0;
  // Notes a sign of life and ends retries of the install token that made the credential. The audit
  // entry is written the first time a credential is used. Fails with compute.not_found or
  // compute.revoked.
  virtual base::Status NoteHeartbeat(const ComputeSign& sign, const AuditEntry& audit) = 0;

  // --- Revocations and audit.
  virtual base::Result<std::vector<Revocation>> RevocationsSince(base::WallTime since) = 0;
  // Forgets revocations before the time; how many.
  virtual base::Result<std::size_t> DropRevocationsBefore(base::WallTime before) = 0;
  // Forgets what ended before the time and can do nothing any more: sessions and sign-in links by
  // their expiry, personal keys that were revoked, credentials that were replaced, install tokens
  // that no credential is left of.
  // At most `limit` of each kind, in one short transaction; how many went.
  virtual base::Result<std::size_t> DropOverBefore(base::WallTime before, std::size_t limit) = 0;
  // The newest entries of the organisation first.
  virtual base::Result<std::vector<AuditEntry>> Audit(std::string_view organisation_id,
                                                      std::size_t limit) = 0;
};

}  // namespace expanse::store
