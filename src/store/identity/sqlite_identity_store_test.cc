#include "store/identity/sqlite_identity_store.h"

#include <sys/stat.h>

#include "base/files.h"
#include "store/identity/identity_store_contract.h"

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
