#include "store/sql/migrate.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace expanse::store::sql {
namespace {

// The engine's names for the column types that differ between engines.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kSqliteTypes = {{
    {"{bytes}", "BLOB"},
    {"{int64}", "INTEGER"},
    {"{real}", "REAL"},
}};

std::string WithTypes(std::string sql) {
  for (const auto& [placeholder, type] : kSqliteTypes) {
    for (auto at = sql.find(placeholder); at != std::string::npos; at = sql.find(placeholder, at)) {
      sql.replace(at, placeholder.size(), type);
    }
  }
  return sql;
}

base::Result<int> Apply(Connection& connection, std::span<const Migration> migrations,
                        std::string_view name) {
  EXPANSE_RETURN_IF_ERROR(
      connection.RunOnce("CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY "
                         "KEY, name TEXT NOT NULL)"));
  int current = 0;
  constexpr std::array kColumns = {Column::kInt};
  EXPANSE_RETURN_IF_ERROR(connection.Query("SELECT MAX(version) FROM schema_migrations", {},
                                           kColumns, [&](const Row& row) -> base::Result<bool> {
                                             current = static_cast<int>(row.Int(0));
                                             return true;
                                           }));
  const int known = migrations.empty() ? 0 : migrations.back().version;
  if (current > known) {
    return base::Fail(
        base::Code::kFailedPrecondition, "store.newer",
        fmt::format(
            "{} has schema version {} and this program knows up to {}; run the newer program", name,
            current, known));
  }
  for (const Migration& migration : migrations) {
    if (migration.version <= current) continue;
    for (const std::string& statement : migration.statements) {
      if (auto status = connection.RunOnce(WithTypes(statement)); !status) {
        return std::unexpected(std::move(status).error().With(fmt::format(
            "migrating {} to version {} ({})", name, migration.version, migration.name)));
      }
    }
    const std::array<Value, 2> params = {Value(migration.version), Value(migration.name)};
    if (auto inserted = connection.Execute(
            "INSERT INTO schema_migrations (version, name) VALUES (:version, :name)", params);
        !inserted) {
      return std::unexpected(std::move(inserted).error());
    }
  }
  return known;
}

}  // namespace

base::Result<int> Migrate(Connection& connection, std::span<const Migration> migrations,
                          std::string_view name) {
  for (std::size_t i = 0; i < migrations.size(); ++i) {
    EXPANSE_CHECK(migrations[i].version == static_cast<int>(i) + 1);
  }
  EXPANSE_RETURN_IF_ERROR(connection.BeginWrite());
  auto version = Apply(connection, migrations, name);
  base::Status status;
  if (version) status = connection.Commit();
  if (!version || !status) connection.Rollback();
  if (!status) return std::unexpected(std::move(status).error());
  return version;
}

}  // namespace expanse::store::sql
