#include "intelligence/history/history_tables.h"

#include <string>
#include <vector>

#include "base/crypto.h"

namespace expanse::intelligence::history {

std::span<const store::sql::Migration> HistoryMigrations() {
  static const std::vector<store::sql::Migration> migrations = {
      {1,
       "runs, bundles and the place in the feed",
       {
           // "version", "change" and "began" (the place in the feed), "next_bundle".
           "CREATE TABLE state (name TEXT PRIMARY KEY, value {int64} NOT NULL)",
           "CREATE TABLE place ("
           " place_id {int64} PRIMARY KEY, organisation_id TEXT NOT NULL, compute_id TEXT NOT NULL,"
           " UNIQUE (organisation_id, compute_id))",
           // numbers and signature: the bytes of doubles and of 32-bit integers.
           "CREATE TABLE bundle ("
           " bundle_id {int64} PRIMARY KEY, organisation_id TEXT NOT NULL, bundle_key TEXT NOT "
           "NULL,"
           " entry_hash TEXT NOT NULL, shape_hash TEXT NOT NULL, numbers {bytes}, signature "
           "{bytes},"
           " UNIQUE (organisation_id, bundle_key, entry_hash))",
           "CREATE TABLE bundle_file ("
           " bundle_id {int64} NOT NULL, organisation_id TEXT NOT NULL, normalised_hash TEXT NOT "
           "NULL,"
           " PRIMARY KEY (organisation_id, normalised_hash, bundle_id))",
           "CREATE INDEX bundle_file_by_bundle ON bundle_file (bundle_id)",
           // Where a bundle has run.
           "CREATE TABLE bundle_place ("
           " bundle_id {int64} NOT NULL, place_id {int64} NOT NULL, PRIMARY KEY (bundle_id, "
           "place_id))",
           // Bundles as they were captured: several make one, as directives do not count. bundle_id
           // is 0 for one without source.
           "CREATE TABLE captured ("
           " organisation_id TEXT NOT NULL, bundle_hash TEXT NOT NULL, bundle_id {int64} NOT NULL,"
           " PRIMARY KEY (organisation_id, bundle_hash))",
           "CREATE INDEX captured_by_bundle ON captured (bundle_id)",
           // Files whose stored text lacks secrets: by the bytes that they had.
           "CREATE TABLE redacted_file ("
           " organisation_id TEXT NOT NULL, content_hash TEXT NOT NULL, normalised_hash TEXT NOT "
           "NULL,"
           " PRIMARY KEY (organisation_id, content_hash))",
           // wanted: the captured bundle that is not there yet. settle_at: when the samples are
           // looked at again, microseconds since 1970.
           "CREATE TABLE run ("
           " execution_id TEXT PRIMARY KEY, place_id {int64} NOT NULL, bundle_id {int64},"
           " arguments_key {int64} NOT NULL, name_key {int64}, owner_key {int64}, wanted TEXT,"
           " submitted_at {int64} NOT NULL, settle_at {int64}, detail {bytes})",
           // Newest first at any of some places: places are told apart within the index.
           "CREATE INDEX run_by_bundle ON run (bundle_id, submitted_at, place_id) WHERE bundle_id "
           "IS NOT NULL",
           "CREATE INDEX run_by_arguments ON run (bundle_id, arguments_key, submitted_at, place_id)"
           " WHERE bundle_id IS NOT NULL",
           "CREATE INDEX run_by_name ON run (name_key, submitted_at, place_id) WHERE name_key IS "
           "NOT NULL",
           "CREATE INDEX run_by_owner ON run (owner_key, submitted_at, place_id) WHERE owner_key "
           "IS NOT NULL",
           "CREATE INDEX run_by_wanted ON run (wanted) WHERE wanted IS NOT NULL",
           "CREATE INDEX run_by_settling ON run (settle_at) WHERE settle_at IS NOT NULL",
       }},
  };
  return migrations;
}

std::int64_t TextKey(std::string_view text) {
  const std::string hash = base::Sha256(text);
  std::uint64_t key = 0;
  for (int i = 0; i < 8; ++i) key = key << 8 | static_cast<unsigned char>(hash[i]);
  key >>= 1;
  return key == 0 ? 1 : static_cast<std::int64_t>(key);
}

std::int64_t NameKey(std::string_view user, std::string_view job_name) {
  std::string both(user);
  both += '\0';
  both += job_name;
  return TextKey(both);
}

}  // namespace expanse::intelligence::history
