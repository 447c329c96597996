#include "store/identity/sqlite_identity_store.h"
#include "store/identity/trail.h"

namespace expanse::store {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;
using sql::Row;
using sql::Transaction;
using enum sql::Column;

constexpr std::string_view kComputeColumns =
    "SELECT id, organisation_id, name, type, team_id, daemon_version, created_at, "
    "last_heartbeat_at, revoked_at "
    "FROM compute ";
constexpr std::initializer_list<sql::Column> kComputeTypes = {kText, kText, kText, kText, kText,
                                                              kText, kInt,  kInt,  kInt};

Compute ComputeOf(const Row& row) {
  Compute compute;
  compute.id = row.Text(0);
  compute.organisation_id = row.Text(1);
  compute.name = row.Text(2);
  compute.type =
      evidence::ParseSourceType(row.Text(3)).value_or(evidence::SourceType::kUnspecified);
  compute.team_id = row.Text(4);
  compute.daemon_version = row.Text(5);
  compute.created_at = row.Time(6);
  compute.last_heartbeat_at = row.MaybeTime(7);
  compute.revoked_at = row.MaybeTime(8);
  return compute;
}

std::unexpected<base::Error> NotFound() {
  return Fail(Code::kNotFound, "compute.not_found",
              "there is no such compute in this organisation");
}

Result<std::optional<Compute>> Find(Transaction& tx, std::string_view compute_id) {
  std::optional<Compute> compute;
  EXPANSE_RETURN_IF_ERROR(tx.Query(std::string(kComputeColumns) + "WHERE id = :id", {compute_id},
                                   kComputeTypes,
                                   [&](const Row& row) { compute = ComputeOf(row); }));
  return compute;
}

Result<Compute> Get(Transaction& tx, std::string_view organisation_id,
                    std::string_view compute_id) {
  EXPANSE_ASSIGN_OR_RETURN(auto compute, Find(tx, compute_id));
  if (!compute || compute->organisation_id != organisation_id) return NotFound();
  return std::move(*compute);
}

Status WriteToken(Transaction& tx, std::string_view compute_id, const NewInstallToken& token,
                  base::WallTime now) {
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("INSERT INTO install_token (id, compute_id, hash, created_at, expires_at) "
                 "VALUES (:id, :compute, :hash, :now, :expires)",
                 {token.id, compute_id, token.hash, now, token.expires_at}));
  return {};
}

Status EndTokens(Transaction& tx, std::string_view compute_id, base::WallTime now) {
  EXPANSE_RETURN_IF_ERROR(tx.Execute(
      "UPDATE install_token SET ended_at = :now WHERE compute_id = :compute AND ended_at IS NULL",
      {now, compute_id}));
  return {};
}

// Replaces and revokes the credentials of a compute; their ids.
Result<std::vector<std::string>> EndCredentials(Transaction& tx, std::string_view compute_id,
                                                base::WallTime now) {
  std::vector<std::string> ids;
  EXPANSE_RETURN_IF_ERROR(tx.Query(
      "SELECT id FROM compute_credential WHERE compute_id = :compute AND replaced_at IS NULL",
      {compute_id}, {kText}, [&](const Row& row) { ids.push_back(row.Text(0)); }));
  for (const std::string& id : ids) {
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("UPDATE compute_credential SET replaced_at = :now WHERE id = :id", {now, id}));
    EXPANSE_RETURN_IF_ERROR(WriteRevocation(tx, id, now));
  }
  return ids;
}

struct Token {
  std::string id;
  std::string compute_id;
  base::WallTime expires_at{};
  bool ended = false;
};

Result<Token> FindToken(Transaction& tx, const InstallExchange& exchange, base::WallTime now) {
  std::optional<Token> token;
  EXPANSE_RETURN_IF_ERROR(
      tx.Query("SELECT id, compute_id, expires_at, ended_at FROM install_token WHERE hash = :hash",
               {exchange.token_hash}, {kText, kText, kInt, kInt}, [&](const Row& row) {
                 token = Token{row.Text(0), row.Text(1), row.Time(2), !row.IsNull(3)};
               }));
  if (!token) {
    return Fail(Code::kUnauthenticated, "install_token.unknown", "this install token is not known");
  }
  if (token->ended) {
    return Fail(Code::kFailedPrecondition, "install_token.used",
                "this install token was used or replaced; make a new one for the compute");
  }
  if (token->expires_at <= now) {
    return Fail(Code::kFailedPrecondition, "install_token.expired",
                "this install token has expired; make a new one for the compute");
  }
  return std::move(*token);
}

}  // namespace

Status SqliteIdentityStore::RegisterCompute(const Compute& compute, const NewInstallToken& token,
                                            const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Status {
    EXPANSE_ASSIGN_OR_RETURN(
        const auto taken,
        tx.QueryInt("SELECT COUNT(*) FROM compute WHERE organisation_id = :organisation "
                    "AND name = :name AND revoked_at IS NULL",
                    {compute.organisation_id, compute.name}));
    if (taken.value_or(0) > 0) {
      return Fail(Code::kAlreadyExists, "compute.name_taken",
                  "a compute named \"" + compute.name + "\" exists; choose another name");
    }
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("INSERT INTO compute (id, organisation_id, name, type, team_id, daemon_version, "
                   "created_at) "
                   "VALUES (:id, :organisation, :name, :type, :team, '', :created)",
                   {compute.id, compute.organisation_id, compute.name, evidence::Name(compute.type),
                    compute.team_id, compute.created_at}));
    EXPANSE_RETURN_IF_ERROR(WriteToken(tx, compute.id, token, audit.at));
    return WriteAudit(tx, audit);
  });
}

Result<std::vector<Compute>> SqliteIdentityStore::Computes(std::string_view organisation_id,
                                                           bool include_revoked) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::vector<Compute>> {
    std::vector<Compute> computes;
    const std::string text =
        std::string(kComputeColumns) + "WHERE organisation_id = :organisation " +
        (include_revoked ? "" : "AND revoked_at IS NULL ") + "ORDER BY created_at DESC, id DESC";
    EXPANSE_RETURN_IF_ERROR(tx.Query(text, {organisation_id}, kComputeTypes,
                                     [&](const Row& row) { computes.push_back(ComputeOf(row)); }));
    return computes;
  });
}

Result<Compute> SqliteIdentityStore::GetCompute(std::string_view organisation_id,
                                                std::string_view compute_id) {
  return database_->WithRead(
      [&](Transaction& tx) -> Result<Compute> { return Get(tx, organisation_id, compute_id); });
}

Result<Compute> SqliteIdentityStore::RevokeCompute(std::string_view organisation_id,
                                                   std::string_view compute_id,
                                                   const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Result<Compute> {
    EXPANSE_ASSIGN_OR_RETURN(Compute compute, Get(tx, organisation_id, compute_id));
    if (compute.revoked_at) return compute;
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("UPDATE compute SET revoked_at = :now WHERE id = :id", {audit.at, compute_id}));
    EXPANSE_RETURN_IF_ERROR(EndTokens(tx, compute_id, audit.at));
    EXPANSE_RETURN_IF_ERROR(EndCredentials(tx, compute_id, audit.at));
    EXPANSE_RETURN_IF_ERROR(WriteRevocation(tx, compute_id, audit.at));
    EXPANSE_RETURN_IF_ERROR(WriteAudit(tx, audit));
    compute.revoked_at = audit.at;
    return compute;
  });
}

Result<Compute> SqliteIdentityStore::ReissueInstallToken(std::string_view organisation_id,
                                                         std::string_view compute_id,
                                                         const NewInstallToken& token,
                                                         const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Result<Compute> {
    EXPANSE_ASSIGN_OR_RETURN(Compute compute, Get(tx, organisation_id, compute_id));
    if (compute.revoked_at) {
      return Fail(Code::kFailedPrecondition, "compute.revoked",
                  "this compute was revoked; register a new one");
    }
    EXPANSE_RETURN_IF_ERROR(EndTokens(tx, compute_id, audit.at));
    EXPANSE_RETURN_IF_ERROR(WriteToken(tx, compute_id, token, audit.at));
    EXPANSE_RETURN_IF_ERROR(WriteAudit(tx, audit));
    return compute;
  });
}

Result<ExchangedInstall> SqliteIdentityStore::ExchangeInstallToken(const InstallExchange& exchange,
                                                                   const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Result<ExchangedInstall> {
    EXPANSE_ASSIGN_OR_RETURN(const Token token, FindToken(tx, exchange, audit.at));
    EXPANSE_ASSIGN_OR_RETURN(auto compute, Find(tx, token.compute_id));
    EXPANSE_CHECK(compute.has_value());  // a foreign key
    if (exchange.type != evidence::SourceType::kUnspecified && exchange.type != compute->type) {
      return Fail(Code::kFailedPrecondition, "install_token.type",
                  "this install token is for a compute of type " +
                      std::string(evidence::Name(compute->type)));
    }
    ExchangedInstall exchanged;
    EXPANSE_ASSIGN_OR_RETURN(exchanged.replaced_credentials,
                             EndCredentials(tx, compute->id, audit.at));
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("UPDATE install_token SET burned_at = :now WHERE id = :id AND burned_at IS NULL",
                   {audit.at, token.id}));
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "INSERT INTO compute_credential (id, compute_id, hash, install_token_id, created_at) "
        "VALUES (:id, :compute, :hash, :token, :now)",
        {exchange.credential_id, compute->id, exchange.credential_hash, token.id, audit.at}));
    AuditEntry entry = audit;
    entry.organisation_id = compute->organisation_id;
    entry.subject = compute->id;
    entry.detail = compute->name;
    EXPANSE_RETURN_IF_ERROR(WriteAudit(tx, entry));
    exchanged.compute = std::move(*compute);
    return exchanged;
  });
}

Result<std::optional<ComputeCredential>> SqliteIdentityStore::CurrentCredential(
    std::string_view compute_id) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::optional<ComputeCredential>> {
    std::optional<ComputeCredential> credential;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT k.id, k.compute_id, c.organisation_id, k.hash FROM compute_credential k "
        "JOIN compute c ON c.id = k.compute_id "
        "WHERE k.compute_id = :compute AND k.replaced_at IS NULL AND c.revoked_at IS NULL",
        {compute_id}, {kText, kText, kText, kText}, [&](const Row& row) {
          credential = ComputeCredential{row.Text(0), row.Text(1), row.Text(2), row.Text(3)};
        }));
    return credential;
  });
}

Status SqliteIdentityStore::NoteHeartbeat(const ComputeSign& sign, const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Status {
    EXPANSE_ASSIGN_OR_RETURN(const auto compute, Find(tx, sign.compute_id));
    if (!compute) return NotFound();
    // Also a credential that was replaced while this call was under way.
    EXPANSE_ASSIGN_OR_RETURN(const auto current,
                             tx.QueryInt("SELECT COUNT(*) FROM compute_credential WHERE id = :id "
                                         "AND compute_id = :compute AND replaced_at IS NULL",
                                         {sign.credential_id, sign.compute_id}));
    if (compute->revoked_at || current.value_or(0) == 0) {
      return Fail(Code::kUnauthenticated, "compute.revoked",
                  "this compute's credential was revoked");
    }
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "UPDATE compute SET last_heartbeat_at = :now, daemon_version = :version WHERE id = :id",
        {audit.at, sign.daemon_version, sign.compute_id}));
    EXPANSE_ASSIGN_OR_RETURN(const std::int64_t first,
                             tx.Execute("UPDATE compute_credential SET first_used_at = :now WHERE "
                                        "id = :id AND first_used_at IS NULL",
                                        {audit.at, sign.credential_id}));
    if (first == 0) return {};
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("UPDATE install_token SET ended_at = :now WHERE ended_at IS NULL AND id = "
                   "(SELECT install_token_id FROM compute_credential WHERE id = :credential)",
                   {audit.at, sign.credential_id}));
    return WriteAudit(tx, audit);
  });
}

}  // namespace expanse::store
