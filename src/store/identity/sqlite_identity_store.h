// The embedded identity store: one database file through store/sql. people.cc has organisations,
// keys and sessions, computes.cc the computes, this file's .cc what both need.
#pragma once

#include <memory>
#include <string>

#include "store/records/identity_store.h"
#include "store/sql/database.h"

namespace expanse::store {

class SqliteIdentityStore final : public IdentityStore {
 public:
  // Opens or creates the file; its directory must exist. Errors of sql::Database::Open.
  static base::Result<std::unique_ptr<SqliteIdentityStore>> Open(const std::string& path);

  base::Status CreateOrganisation(const Organisation& organisation, std::span<const Role> roles,
                                  const User& owner, bool only_first,
                                  const AuditEntry& audit) override;
  base::Status CreateMember(const User& user, std::string_view organisation_id,
                            std::string_view role_id, const AuditEntry& audit) override;
  base::Result<bool> HasOrganisation() override;
  base::Result<std::vector<Role>> Roles(std::string_view organisation_id) override;
  base::Result<std::optional<Member>> FindMember(std::string_view user_id,
                                                 std::string_view organisation_id) override;
  base::Result<std::vector<Member>> Owners() override;

  base::Status CreateKey(const PersonalKey& key, std::string_view hash,
                         const AuditEntry& audit) override;
  base::Result<std::vector<PersonalKey>> Keys(std::string_view user_id) override;
  base::Result<std::optional<PersonalKey>> FindKey(std::string_view hash) override;
  base::Result<std::vector<std::string>> RevokeKey(std::string_view user_id,
                                                   std::string_view key_id,
                                                   const AuditEntry& audit) override;

  base::Status CreateSignInLink(const SignInLink& link, const AuditEntry& audit) override;
  base::Result<std::optional<SignInLink>> FindSignInLink(std::string_view hash,
                                                         base::WallTime now) override;
  base::Status StartSession(const Session& session, const RefreshHashes& refresh,
                            std::string_view link_hash, const AuditEntry& audit) override;
  base::Result<std::optional<Session>> FindSession(std::string_view selector_hash,
                                                   base::WallTime now) override;
  base::Result<Rotation> RotateSession(const Session& session, const RefreshHashes& presented,
                                       std::string_view new_secret_hash,
                                       const AuditEntry& audit) override;
  base::Result<bool> EndSession(std::string_view session_id, const AuditEntry& audit) override;

  base::Status RegisterCompute(const Compute& compute, const NewInstallToken& token,
                               const AuditEntry& audit) override;
  base::Result<std::vector<Compute>> Computes(std::string_view organisation_id,
                                              bool include_revoked) override;
  base::Result<Compute> GetCompute(std::string_view organisation_id,
                                   std::string_view compute_id) override;
  base::Result<Compute> RevokeCompute(std::string_view organisation_id, std::string_view compute_id,
                                      const AuditEntry& audit) override;
  base::Result<Compute> ReissueInstallToken(std::string_view organisation_id,
                                            std::string_view compute_id,
                                            const NewInstallToken& token,
                                            const AuditEntry& audit) override;
  base::Result<ExchangedInstall> ExchangeInstallToken(const InstallExchange& exchange,
                                                      const AuditEntry& audit) override;
  base::Result<std::optional<ComputeCredential>> CurrentCredential(
      std::string_view compute_id) override;
  base::Status NoteHeartbeat(const ComputeSign& sign, const AuditEntry& audit) override;

  base::Result<std::vector<Revocation>> RevocationsSince(base::WallTime since) override;
  base::Result<std::size_t> DropRevocationsBefore(base::WallTime before) override;
  base::Result<std::size_t> DropOverBefore(base::WallTime before, std::size_t limit) override;
  base::Result<std::vector<AuditEntry>> Audit(std::string_view organisation_id,
                                              std::size_t limit) override;

 private:
  explicit SqliteIdentityStore(std::unique_ptr<sql::Database> database)
      : database_(std::move(database)) {}
  const std::unique_ptr<sql::Database> database_;
};

}  // namespace expanse::store
