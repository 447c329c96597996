#include <span>

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

Status WriteMembership(Transaction& tx, std::string_view user, std::string_view organisation,
                       std::string_view role, base::WallTime now) {
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("INSERT INTO membership (user_id, organisation_id, role_id, joined_at) "
                 "VALUES (:user, :organisation, :role, :now)",
                 {user, organisation, role, now}));
  return {};
}

constexpr std::string_view kMemberColumns =
    "p.id, p.name, p.email, p.submit_users, p.created_at, o.id, o.name, o.created_at, r.id, "
    "r.name, r.is_owner, "
    "r.permissions FROM membership m JOIN person p ON p.id = m.user_id "
    "JOIN organisation o ON o.id = m.organisation_id JOIN role r ON r.id = m.role_id ";

Result<std::vector<Member>> QueryMembers(Transaction& tx, std::string_view rest,
                                         std::span<const sql::Value> params) {
  std::vector<Member> members;
  const std::string text = "SELECT " + std::string(kMemberColumns) + std::string(rest);
  EXPANSE_RETURN_IF_ERROR(tx.Query(
      text, params,
      {kText, kText, kText, kText, kInt, kText, kText, kInt, kText, kText, kInt, kText},
      [&](const Row& row) {
        Member member;
        member.user = {row.Text(0), row.Text(1), row.Text(2), SplitLines(row.Text(3)), row.Time(4)};
        member.organisation = {row.Text(5), row.Text(6), row.Time(7)};
        member.role = {row.Text(8), row.Text(5), row.Text(9), row.Bool(10),
                       SplitLines(row.Text(11))};
        members.push_back(std::move(member));
      }));
  return members;
}

PersonalKey KeyOf(const Row& row) {
  return {row.Text(0), row.Text(1),      row.Text(2),     row.Text(3),
          row.Time(4), row.MaybeTime(5), row.MaybeTime(6)};
}
constexpr std::initializer_list<sql::Column> kKeyTypes = {kText, kText, kText, kText,
                                                          kInt,  kInt,  kInt};

// Ends and revokes one session; false if it had ended.
Result<bool> End(Transaction& tx, std::string_view session_id, base::WallTime now) {
  EXPANSE_ASSIGN_OR_RETURN(
      const std::int64_t ended,
      tx.Execute("UPDATE session SET ended_at = :now WHERE id = :id AND ended_at IS NULL",
                 {now, session_id}));
  if (ended == 0) return false;
  EXPANSE_RETURN_IF_ERROR(WriteRevocation(tx, session_id, now));
  return true;
}

// Uses up what the session is started with.
Result<bool> UseCredential(Transaction& tx, const Session& session, std::string_view link_hash,
                           base::WallTime now) {
  std::int64_t used = 0;
  if (!link_hash.empty()) {
    EXPANSE_ASSIGN_OR_RETURN(
        used,
        tx.Execute("UPDATE sign_in_link SET used_at = :now WHERE hash = :hash AND user_id = :user "
                   "AND used_at IS NULL AND expires_at > :then",
                   {now, link_hash, session.user_id, now}));
  } else {
    EXPANSE_ASSIGN_OR_RETURN(
        used,
        tx.Execute("UPDATE personal_key SET last_used_at = :now WHERE id = :id AND user_id = :user "
                   "AND revoked_at IS NULL",
                   {now, session.key_id, session.user_id}));
  }
  return used == 1;
}

}  // namespace

Status WriteUser(Transaction& tx, const User& user) {
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("INSERT INTO person (id, name, email, submit_users, created_at) "
                 "VALUES (:id, :name, :email, :submit_users, :created)",
                 {user.id, user.name, user.email, JoinLines(user.submit_users), user.created_at}));
  return {};
}

Status SqliteIdentityStore::CreateOrganisation(const Organisation& organisation,
                                               std::span<const Role> roles, const User& owner,
                                               bool only_first, const AuditEntry& audit) {
  EXPANSE_CHECK(!roles.empty());
  return database_->WithWrite([&](Transaction& tx) -> Status {
    if (only_first) {
      EXPANSE_ASSIGN_OR_RETURN(const auto count, tx.QueryInt("SELECT COUNT(*) FROM organisation"));
      if (count.value_or(0) > 0) {
        return Fail(Code::kAlreadyExists, "identity.not_first", "there is an organisation already");
      }
    }
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("INSERT INTO organisation (id, name, created_at) VALUES (:id, :name, :created)",
                   {organisation.id, organisation.name, organisation.created_at}));
    for (const Role& role : roles) {
      EXPANSE_RETURN_IF_ERROR(tx.Execute(
          "INSERT INTO role (id, organisation_id, name, is_owner, permissions) "
          "VALUES (:id, :organisation, :name, :owner, :permissions)",
          {role.id, organisation.id, role.name, role.owner, JoinLines(role.permissions)}));
    }
    EXPANSE_RETURN_IF_ERROR(WriteUser(tx, owner));
    EXPANSE_RETURN_IF_ERROR(WriteMembership(tx, owner.id, organisation.id, roles[0].id, audit.at));
    return WriteAudit(tx, audit);
  });
}

Status SqliteIdentityStore::CreateMember(const User& user, std::string_view organisation_id,
                                         std::string_view role_id, const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Status {
    EXPANSE_ASSIGN_OR_RETURN(
        const auto known,
        tx.QueryInt(
            "SELECT COUNT(*) FROM role WHERE id = :role AND organisation_id = :organisation",
            {role_id, organisation_id}));
    if (known.value_or(0) == 0) {
      return Fail(Code::kNotFound, "identity.role_not_found", "the organisation has no such role");
    }
    EXPANSE_RETURN_IF_ERROR(WriteUser(tx, user));
    EXPANSE_RETURN_IF_ERROR(WriteMembership(tx, user.id, organisation_id, role_id, audit.at));
    return WriteAudit(tx, audit);
  });
}

Result<bool> SqliteIdentityStore::HasOrganisation() {
  return database_->WithRead([&](Transaction& tx) -> Result<bool> {
    EXPANSE_ASSIGN_OR_RETURN(const auto count, tx.QueryInt("SELECT COUNT(*) FROM organisation"));
    return count.value_or(0) > 0;
  });
}

Result<std::vector<Role>> SqliteIdentityStore::Roles(std::string_view organisation_id) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::vector<Role>> {
    std::vector<Role> roles;
    EXPANSE_RETURN_IF_ERROR(
        tx.Query("SELECT id, organisation_id, name, is_owner, permissions FROM role "
                 "WHERE organisation_id = :organisation ORDER BY is_owner DESC, name",
                 {organisation_id}, {kText, kText, kText, kInt, kText}, [&](const Row& row) {
                   roles.push_back({row.Text(0), row.Text(1), row.Text(2), row.Bool(3),
                                    SplitLines(row.Text(4))});
                 }));
    return roles;
  });
}

Result<std::optional<Member>> SqliteIdentityStore::FindMember(std::string_view user_id,
                                                              std::string_view organisation_id) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::optional<Member>> {
    std::vector<sql::Value> params = {user_id};
    std::string rest = "WHERE m.user_id = :user ";
    if (!organisation_id.empty()) {
      params.emplace_back(organisation_id);
      rest += "AND m.organisation_id = :organisation ";
    }
    EXPANSE_ASSIGN_OR_RETURN(
        auto members,
        QueryMembers(tx, rest + "ORDER BY m.joined_at, m.organisation_id LIMIT 1", params));
    if (members.empty()) return std::nullopt;
    return std::move(members.front());
  });
}

Result<std::vector<Member>> SqliteIdentityStore::Owners() {
  return database_->WithRead([&](Transaction& tx) -> Result<std::vector<Member>> {
    return QueryMembers(tx, "WHERE r.is_owner = 1 ORDER BY m.joined_at, p.id", {});
  });
}

Status SqliteIdentityStore::CreateKey(const PersonalKey& key, std::string_view hash,
                                      const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Status {
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("INSERT INTO personal_key (id, user_id, name, hint, hash, created_at) "
                   "VALUES (:id, :user, :name, :hint, :hash, :created)",
                   {key.id, key.user_id, key.name, key.hint, hash, key.created_at}));
    return WriteAudit(tx, audit);
  });
}

Result<std::vector<PersonalKey>> SqliteIdentityStore::Keys(std::string_view user_id) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::vector<PersonalKey>> {
    std::vector<PersonalKey> keys;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT id, user_id, name, hint, created_at, last_used_at, revoked_at FROM personal_key "
        "WHERE user_id = :user ORDER BY created_at DESC, id DESC",
        {user_id}, kKeyTypes, [&](const Row& row) { keys.push_back(KeyOf(row)); }));
    return keys;
  });
}

Result<std::optional<PersonalKey>> SqliteIdentityStore::FindKey(std::string_view hash) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::optional<PersonalKey>> {
    std::optional<PersonalKey> key;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT id, user_id, name, hint, created_at, last_used_at, revoked_at FROM personal_key "
        "WHERE hash = :hash AND revoked_at IS NULL",
        {hash}, kKeyTypes, [&](const Row& row) { key = KeyOf(row); }));
    return key;
  });
}

Result<std::vector<std::string>> SqliteIdentityStore::RevokeKey(std::string_view user_id,
                                                                std::string_view key_id,
                                                                const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Result<std::vector<std::string>> {
    EXPANSE_ASSIGN_OR_RETURN(
        const auto known,
        tx.QueryInt("SELECT COUNT(*) FROM personal_key WHERE id = :id AND user_id = :user",
                    {key_id, user_id}));
    if (known.value_or(0) == 0)
      return Fail(Code::kNotFound, "key.not_found", "you have no such key");
    std::vector<std::string> sessions;
    EXPANSE_ASSIGN_OR_RETURN(
        const std::int64_t revoked,
        tx.Execute(
            "UPDATE personal_key SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL",
            {audit.at, key_id}));
    if (revoked == 0) return sessions;
    EXPANSE_RETURN_IF_ERROR(
        tx.Query("SELECT id FROM session WHERE key_id = :key AND ended_at IS NULL ORDER BY id",
                 {key_id}, {kText}, [&](const Row& row) { sessions.push_back(row.Text(0)); }));
    for (const std::string& session : sessions) EXPANSE_RETURN_IF_ERROR(End(tx, session, audit.at));
    EXPANSE_RETURN_IF_ERROR(WriteAudit(tx, audit));
    return sessions;
  });
}

Status SqliteIdentityStore::CreateSignInLink(const SignInLink& link, const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Status {
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "INSERT INTO sign_in_link (hash, user_id, expires_at) VALUES (:hash, :user, :expires)",
        {link.hash, link.user_id, link.expires_at}));
    return WriteAudit(tx, audit);
  });
}

Result<std::optional<SignInLink>> SqliteIdentityStore::FindSignInLink(std::string_view hash,
                                                                      base::WallTime now) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::optional<SignInLink>> {
    std::optional<SignInLink> link;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT hash, user_id, expires_at FROM sign_in_link "
        "WHERE hash = :hash AND used_at IS NULL AND expires_at > :now",
        {hash, now}, {kText, kText, kInt},
        [&](const Row& row) { link = SignInLink{row.Text(0), row.Text(1), row.Time(2)}; }));
    return link;
  });
}

Status SqliteIdentityStore::StartSession(const Session& session, const RefreshHashes& refresh,
                                         std::string_view link_hash, const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Status {
    EXPANSE_ASSIGN_OR_RETURN(const bool used, UseCredential(tx, session, link_hash, audit.at));
    if (!used) {
      return Fail(Code::kUnauthenticated, "session.credential",
                  "this key or link does not work any more");
    }
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "INSERT INTO session (id, user_id, organisation_id, key_id, selector_hash, secret_hash, "
        "created_at, refreshed_at, expires_at) VALUES (:id, :user, :organisation, :key, :selector, "
        ":secret, :created, :refreshed, :expires)",
        {session.id, session.user_id, session.organisation_id, session.key_id, refresh.selector,
         refresh.secret, session.created_at, session.created_at, session.expires_at}));
    return WriteAudit(tx, audit);
  });
}

Result<std::optional<Session>> SqliteIdentityStore::FindSession(std::string_view selector_hash,
                                                                base::WallTime now) {
  return database_->WithRead([&](Transaction& tx) -> Result<std::optional<Session>> {
    std::optional<Session> session;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT id, user_id, organisation_id, key_id, created_at, expires_at FROM session "
        "WHERE selector_hash = :selector AND ended_at IS NULL AND expires_at > :now",
        {selector_hash, now}, {kText, kText, kText, kText, kInt, kInt}, [&](const Row& row) {
          session =
              Session{row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Time(4), row.Time(5)};
        }));
    return session;
  });
}

Result<Rotation> SqliteIdentityStore::RotateSession(const Session& session,
                                                    const RefreshHashes& presented,
                                                    std::string_view new_secret_hash,
                                                    const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Result<Rotation> {
    EXPANSE_ASSIGN_OR_RETURN(
        const std::int64_t rotated,
        tx.Execute("UPDATE session SET secret_hash = :new_secret, organisation_id = :organisation, "
                   "refreshed_at = :now, expires_at = :expires WHERE id = :id AND selector_hash = "
                   ":selector "
                   "AND secret_hash = :secret AND ended_at IS NULL AND expires_at > :then",
                   {new_secret_hash, session.organisation_id, audit.at, session.expires_at,
                    session.id, presented.selector, presented.secret, audit.at}));
    if (rotated == 1) {
      EXPANSE_RETURN_IF_ERROR(WriteAudit(tx, audit));
      return Rotation::kDone;
    }
    EXPANSE_ASSIGN_OR_RETURN(
        const auto live,
        tx.QueryInt("SELECT COUNT(*) FROM session WHERE id = :id AND selector_hash = :selector "
                    "AND ended_at IS NULL AND expires_at > :now",
                    {session.id, presented.selector, audit.at}));
    if (live.value_or(0) == 0) return Rotation::kUnknown;
    EXPANSE_RETURN_IF_ERROR(End(tx, session.id, audit.at));
    AuditEntry reuse = audit;
    reuse.action = "session.reuse";
    reuse.detail = "an old refresh token was used; the session was ended";
    EXPANSE_RETURN_IF_ERROR(WriteAudit(tx, reuse));
    return Rotation::kReused;
  });
}

Result<bool> SqliteIdentityStore::EndSession(std::string_view session_id, const AuditEntry& audit) {
  return database_->WithWrite([&](Transaction& tx) -> Result<bool> {
    EXPANSE_ASSIGN_OR_RETURN(const bool ended, End(tx, session_id, audit.at));
    if (ended) EXPANSE_RETURN_IF_ERROR(WriteAudit(tx, audit));
    return ended;
  });
}

}  // namespace expanse::store
