#include "store/identity/sqlite_identity_store.h"

#include "base/crypto.h"
#include "base/text.h"
#include "store/identity/schema.h"
#include "store/identity/trail.h"

namespace expanse::store {

using base::Result;
using base::Status;
using sql::Row;
using sql::Transaction;
using enum sql::Column;

Result<std::unique_ptr<SqliteIdentityStore>> SqliteIdentityStore::Open(const std::string& path) {
  EXPANSE_ASSIGN_OR_RETURN(auto database, sql::Database::Open({.path = path}, IdentitySchema()));
  return std::unique_ptr<SqliteIdentityStore>(new SqliteIdentityStore(std::move(database)));
}

Status WriteAudit(Transaction& tx, const AuditEntry& entry) {
  EXPANSE_RETURN_IF_ERROR(tx.Execute(
      "INSERT INTO audit (id, at, organisation_id, actor_kind, actor_id, action, subject, detail, "
      "peer, "
      "request_id) VALUES (:id, :at, :organisation, :kind, :actor, :action, :subject, :detail, "
      ":peer, :request)",
      {base::NewUuid(entry.at), entry.at, entry.organisation_id, entry.actor_kind, entry.actor_id,
       entry.action, entry.subject, entry.detail, entry.peer, entry.request_id}));
  return {};
}

Status WriteRevocation(Transaction& tx, std::string_view subject, base::WallTime now) {
  EXPANSE_RETURN_IF_ERROR(tx.Execute(
      "INSERT INTO revocation (subject, revoked_at) VALUES (:subject, :now) ON CONFLICT DO NOTHING",
      {subject, now}));
  return {};
}

std::string JoinLines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (!text.empty()) text += '\n';
    text += line;
  }
  return text;
}

std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  if (text.empty()) return lines;
  for (std::string_view line : base::Split(text, '\n')) lines.emplace_back(line);
  return lines;
}

Result<std::vector<Revocation>> SqliteIdentityStore::RevocationsSince(base::WallTime since) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::vector<Revocation>> {
    std::vector<Revocation> revocations;
    EXPANSE_RETURN_IF_ERROR(
        tx.Query("SELECT subject, revoked_at FROM revocation WHERE revoked_at >= :since ORDER BY "
                 "revoked_at, subject",
                 {since}, {kText, kInt},
                 [&](const Row& row) { revocations.push_back({row.Text(0), row.Time(1)}); }));
    return revocations;
  });
}

Result<std::size_t> SqliteIdentityStore::DropRevocationsBefore(base::WallTime before) {
  return database_->WithWrite([&](Transaction& tx) -> Result<std::size_t> {
    EXPANSE_ASSIGN_OR_RETURN(
        const std::int64_t dropped,
        tx.Execute("DELETE FROM revocation WHERE revoked_at < :before", {before}));
    return static_cast<std::size_t>(dropped);
  });
}

Result<std::size_t> SqliteIdentityStore::DropOverBefore(base::WallTime before, std::size_t limit) {
  // Credentials before the tokens that they refer to.
  constexpr std::string_view kKinds[] = {
      "DELETE FROM session WHERE id IN (SELECT id FROM session WHERE expires_at < :before "
      "ORDER BY expires_at LIMIT :limit)",
      "DELETE FROM sign_in_link WHERE hash IN (SELECT hash FROM sign_in_link WHERE expires_at < "
      ":before ORDER BY expires_at LIMIT :limit)",
      "DELETE FROM personal_key WHERE id IN (SELECT id FROM personal_key WHERE revoked_at < "
      ":before "
      "ORDER BY revoked_at LIMIT :limit)",
      "DELETE FROM compute_credential WHERE id IN (SELECT id FROM compute_credential WHERE "
      "replaced_at < :before ORDER BY replaced_at LIMIT :limit)",
      "DELETE FROM install_token WHERE id IN (SELECT id FROM install_token WHERE expires_at < "
      ":before AND NOT EXISTS (SELECT 1 FROM compute_credential WHERE install_token_id = "
      "install_token.id) ORDER BY expires_at LIMIT :limit)"};
  return database_->WithWrite([&](Transaction& tx) -> Result<std::size_t> {
    std::int64_t dropped = 0;
    for (const std::string_view sql : kKinds) {
      EXPANSE_ASSIGN_OR_RETURN(const std::int64_t gone, tx.Execute(sql, {before, limit}));
      dropped += gone;
    }
    return static_cast<std::size_t>(dropped);
  });
}

Result<std::vector<AuditEntry>> SqliteIdentityStore::Audit(std::string_view organisation_id,
                                                           std::size_t limit) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::vector<AuditEntry>> {
    std::vector<AuditEntry> entries;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT at, organisation_id, actor_kind, actor_id, action, subject, detail, peer, "
        "request_id FROM audit "
        "WHERE organisation_id = :organisation ORDER BY at DESC, id DESC LIMIT :limit",
        {organisation_id, static_cast<std::int64_t>(limit)},
        {kInt, kText, kText, kText, kText, kText, kText, kText, kText}, [&](const Row& row) {
          entries.push_back({row.Time(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4),
                             row.Text(5), row.Text(6), row.Text(7), row.Text(8)});
        }));
    return entries;
  });
}

}  // namespace expanse::store
