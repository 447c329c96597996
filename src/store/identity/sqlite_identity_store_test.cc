#include "store/identity/sqlite_identity_store.h"

#include <sys/stat.h>

#include <map>

#include "base/files.h"
#include "store/identity/identity_store_contract.h"
#include "store/identity/schema.h"
#include "store/sql/database.h"

namespace expanse::store {
namespace {

IdentityStoreUnderTest OpenSqlite() {
  auto dir = std::make_shared<base::TempDir>(base::TempDir::Create().value());
  auto store = SqliteIdentityStore::Open(base::JoinPath(dir->path(), "identity.db"));
  EXPECT_TRUE(store) << store.error().message;
  return {dir, std::move(*store)};
}

INSTANTIATE_TEST_SUITE_P(Sqlite, IdentityStoreContract, testing::Values(&OpenSqlite));

TEST(SqliteIdentityStore, SurvivesReopening) {
  const auto dir = base::TempDir::Create().value();
  const std::string path = base::JoinPath(dir.path(), "identity.db");
  {
    const auto store = SqliteIdentityStore::Open(path).value();
    EXPECT_FALSE(*store->HasOrganisation());
    const std::vector<Role> roles = {{"r", "o", "Owner", true, {}}};
    ASSERT_TRUE(
        store->CreateOrganisation({"o", "Ours", {}}, roles, {"u", "Me", "", {}, {}}, true, {}));
  }
  const auto store = SqliteIdentityStore::Open(path).value();
  EXPECT_TRUE(*store->HasOrganisation());
  EXPECT_EQ(store->Owners()->front().organisation.name, "Ours");
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(SqliteIdentityStore, OlderRolesThatReadExecutionsMayAskTheIntelligencePlane) {
  const auto dir = base::TempDir::Create().value();
  const std::string path = base::JoinPath(dir.path(), "identity.db");
  {
    auto old = sql::Database::Open({.path = path}, IdentitySchema().first(4));
    ASSERT_TRUE(old) << old.error().message;
    ASSERT_TRUE((*old)->WithWrite([](sql::Transaction& tx) -> base::Status {
      EXPANSE_RETURN_IF_ERROR(
          tx.Execute("INSERT INTO organisation (id, name, created_at) VALUES ('o', 'Ours', 1)"));
      const auto add = [&](const char* id, bool owner, const char* permissions) {
        return tx.Execute(
            "INSERT INTO role (id, organisation_id, name, is_owner, permissions) "
            "VALUES (:id, 'o', :name, :owner, :permissions)",
            {id, id, owner, permissions});
      };
      EXPANSE_RETURN_IF_ERROR(add("owner", true, ""));
      EXPANSE_RETURN_IF_ERROR(add("member", false, "computes.read\nexecutions.read"));
      EXPANSE_RETURN_IF_ERROR(add("all", false, "executions.read_all"));
      return {};
    }));
  }
  ASSERT_TRUE(SqliteIdentityStore::Open(path));
  auto now = sql::Database::Open({.path = path}, IdentitySchema());
  ASSERT_TRUE(now) << now.error().message;
  std::map<std::string, std::string> roles;
  ASSERT_TRUE((*now)->WithRead([&](sql::Transaction& tx) {
    return tx.Query("SELECT id, permissions FROM role", {},
                    {sql::Column::kText, sql::Column::kText},
                    [&](const sql::Row& row) { roles[row.Text(0)] = row.Text(1); });
  }));
  EXPECT_EQ(roles["member"], "computes.read\nexecutions.read\nintelligence.use");
  EXPECT_EQ(roles["all"], "executions.read_all");
  EXPECT_EQ(roles["owner"], "");
}

TEST(SqliteIdentityStore, RefusesAFileThatIsNotADatabase) {
  const auto dir = base::TempDir::Create().value();
  const std::string path = base::JoinPath(dir.path(), "identity.db");
  ASSERT_TRUE(base::WriteFileAtomically(path, std::string(8192, 'x'), 0600));
  const auto store = SqliteIdentityStore::Open(path);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().reason, "store.corrupt");
}

}  // namespace
}  // namespace expanse::store
