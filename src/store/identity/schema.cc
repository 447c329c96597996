#include "store/identity/schema.h"

#include <vector>

namespace expanse::store {

// Lists (permissions, submit_users) are lines of one column: they are read and written whole.
std::span<const sql::Migration> IdentitySchema() {
  static const std::vector<sql::Migration> schema = {
      {1,
       "people",
       {"CREATE TABLE organisation (id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at {int64} "
        "NOT NULL)",
        "CREATE TABLE role (id TEXT PRIMARY KEY, organisation_id TEXT NOT NULL REFERENCES "
        "organisation (id), "
        "name TEXT NOT NULL, is_owner {int64} NOT NULL, permissions TEXT NOT NULL, "
        "UNIQUE (organisation_id, name))",
        // "user" is a word of SQL.
        "CREATE TABLE person (id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, "
        "submit_users TEXT NOT NULL, created_at {int64} NOT NULL)",
        "CREATE TABLE membership (user_id TEXT NOT NULL REFERENCES person (id), "
        "organisation_id TEXT NOT NULL REFERENCES organisation (id), "
        "role_id TEXT NOT NULL REFERENCES role (id), joined_at {int64} NOT NULL, "
        "PRIMARY KEY (user_id, organisation_id))",
        "CREATE TABLE personal_key (id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES person "
        "(id), "
        "name TEXT NOT NULL, hint TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, created_at {int64} NOT "
        "NULL, "
        "last_used_at {int64}, revoked_at {int64})",
        "CREATE INDEX personal_key_by_user ON personal_key (user_id, created_at)",
        "CREATE TABLE sign_in_link (hash TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES person "
        "(id), "
        "expires_at {int64} NOT NULL, used_at {int64})",
        "CREATE TABLE session (id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES person (id), "
        "organisation_id TEXT NOT NULL REFERENCES organisation (id), key_id TEXT NOT NULL, "
        "selector_hash TEXT NOT NULL UNIQUE, secret_hash TEXT NOT NULL, created_at {int64} NOT "
        "NULL, "
        "refreshed_at {int64} NOT NULL, expires_at {int64} NOT NULL, ended_at {int64})",
        "CREATE INDEX session_by_key ON session (key_id)"}},
      {2,
       "computes",
       {"CREATE TABLE compute (id TEXT PRIMARY KEY, organisation_id TEXT NOT NULL REFERENCES "
        "organisation (id), "
        "name TEXT NOT NULL, type TEXT NOT NULL, team_id TEXT NOT NULL, daemon_version TEXT NOT "
        "NULL, "
        "created_at {int64} NOT NULL, last_heartbeat_at {int64}, revoked_at {int64})",
        "CREATE UNIQUE INDEX compute_live_name ON compute (organisation_id, name) WHERE revoked_at "
        "IS NULL",
        "CREATE TABLE install_token (id TEXT PRIMARY KEY, compute_id TEXT NOT NULL REFERENCES "
        "compute (id), "
        "hash TEXT NOT NULL UNIQUE, created_at {int64} NOT NULL, expires_at {int64} NOT NULL, "
        "burned_at {int64}, ended_at {int64})",
        "CREATE INDEX install_token_by_compute ON install_token (compute_id)",
        "CREATE TABLE compute_credential (id TEXT PRIMARY KEY, "
        "compute_id TEXT NOT NULL REFERENCES compute (id), hash TEXT NOT NULL UNIQUE, "
        "install_token_id TEXT NOT NULL REFERENCES install_token (id), created_at {int64} NOT "
        "NULL, "
        "first_used_at {int64}, replaced_at {int64})",
        "CREATE INDEX compute_credential_by_compute ON compute_credential (compute_id)"}},
      {3,
       "trail",
       {"CREATE TABLE revocation (subject TEXT PRIMARY KEY, revoked_at {int64} NOT NULL)",
        "CREATE INDEX revocation_by_time ON revocation (revoked_at)",
        "CREATE TABLE audit (id TEXT PRIMARY KEY, at {int64} NOT NULL, organisation_id TEXT NOT "
        "NULL, "
        "actor_kind TEXT NOT NULL, actor_id TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT "
        "NULL, "
        "detail TEXT NOT NULL, peer TEXT NOT NULL, request_id TEXT NOT NULL)",
        "CREATE INDEX audit_by_organisation ON audit (organisation_id, at)"}},
      {4,
       "what is over",
       {"CREATE INDEX session_by_expiry ON session (expires_at)",
        "CREATE INDEX sign_in_link_by_expiry ON sign_in_link (expires_at)",
        "CREATE INDEX personal_key_by_end ON personal_key (revoked_at)",
        "CREATE INDEX install_token_by_expiry ON install_token (expires_at)",
        "CREATE INDEX compute_credential_by_end ON compute_credential (replaced_at)",
        "CREATE INDEX compute_credential_by_token ON compute_credential (install_token_id)"}},
      {5,
       "who may read executions may ask the intelligence plane about them",
       {"UPDATE role SET permissions = permissions || '\nintelligence.use' WHERE is_owner = 0 "
        "AND '\n' || permissions || '\n' LIKE '%\nexecutions.read\n%' "
        "AND '\n' || permissions || '\n' NOT LIKE '%\nintelligence.use\n%'"}},
  };
  return schema;
}

}  // namespace expanse::store
