#include "store/blobs/directory_blob_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "store/blobs/blob_file.h"
#include "store/blobs/blob_store_contract.h"
#include "store/sql/fault_testing.h"

namespace expanse::store {
namespace {

base::Result<std::unique_ptr<BlobStore>> OpenIn(const std::string& directory, base::Clock& clock) {
  return DirectoryBlobStore::Open(base::JoinPath(directory, "blobs"), clock);
}

INSTANTIATE_TEST_SUITE_P(Directory, BlobStoreContract, ::testing::Values(BlobBackend{OpenIn}));

class DirectoryBlobStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto dir = base::TempDir::Create();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
  }
  std::unique_ptr<BlobStore> Open() {
    auto store = OpenIn(dir_->path(), clock_);
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }
  std::string PathOf(const std::string& name) const {
    return dir_->path() + "/blobs/sha256/" + name.substr(7, 2) + "/" + name.substr(9);
  }
  std::optional<base::TempDir> dir_;
  base::FakeClock clock_;
};

TEST_F(DirectoryBlobStoreTest, FilesArePrivateAndCompressedWhereThatHelps) {
  auto store = Open();
  const std::string text = store->Put(std::string(100'000, 'a')).value();
  const std::string noise = store->Put(base::RandomBytes(10'000)).value();
  struct stat info{};
  ASSERT_EQ(::stat(PathOf(text).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_LT(info.st_size, 1000);
  ASSERT_EQ(::stat(PathOf(noise).c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 10'016);
  ASSERT_EQ(::stat((dir_->path() + "/blobs").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  EXPECT_TRUE(base::ListDirectory(dir_->path() + "/blobs/tmp")->empty());
}

TEST_F(DirectoryBlobStoreTest, AnyDamageIsFoundAndRepairedByPuttingAgain) {
  auto store = Open();
  const std::string data = "a short blob that is stored as it is";
  const std::string name = store->Put(data).value();
  const std::string file = base::ReadFile(PathOf(name)).value();
  for (std::size_t at = 0; at <= file.size(); ++at) {
    std::string damaged = file.substr(0, at);  // torn, or whole with one byte changed
    if (at % 2 == 1) {
      damaged = file;
      damaged[at - 1] = static_cast<char>(damaged[at - 1] ^ 0x20);
    } else if (at == file.size()) {
      damaged += "more";
    }
    ASSERT_TRUE(base::WriteFileAtomically(PathOf(name), damaged, 0600));
    auto got = store->Get(name);
    ASSERT_FALSE(got) << at;
    EXPECT_EQ(got.error().code, base::Code::kDataLoss);
    EXPECT_EQ(got.error().reason, "blob.corrupt");
  }
  EXPECT_EQ(store->Put(data), name);
  EXPECT_EQ(store->Get(name), data);
}

TEST_F(DirectoryBlobStoreTest, OpeningRemovesOldLeftoversOnly) {
  Open();
  const std::string tmp = dir_->path() + "/blobs/tmp";
  ASSERT_TRUE(base::WriteFileAtomically(tmp + "/left", "half a bl", 0600));
  struct stat info{};
  ASSERT_EQ(::stat((tmp + "/left").c_str(), &info), 0);
  const base::WallTime written = base::WallTime(std::chrono::seconds(info.st_mtim.tv_sec));
  clock_.JumpWall(written + std::chrono::minutes(30) - clock_.Now());
  Open();
  EXPECT_TRUE(base::Exists(tmp + "/left"));
  clock_.JumpWall(std::chrono::hours(2));
  Open();
  EXPECT_FALSE(base::Exists(tmp + "/left"));
}

TEST_F(DirectoryBlobStoreTest, WhatWasAcknowledgedSurvivesKillingTheWriter) {
  std::mt19937_64 random(9);
  const auto blob = [](std::uint64_t n) { return std::to_string(n) + std::string(n % 5000, 'z'); };
  std::uint64_t acknowledged = 0;
  for (int round = 0; round < 20; ++round) {
    std::unique_ptr<BlobStore> mine;
    auto last = WriteUntilKilled(acknowledged + 1, random, [&](std::uint64_t n) -> base::Status {
      if (mine == nullptr) mine = Open();
      auto name = mine->Put(blob(n));
      if (!name) return std::unexpected(name.error());
      return {};
    });
    ASSERT_TRUE(last) << last.error().message;
    acknowledged = *last;
    auto store = Open();
    for (std::uint64_t n = 1; n <= acknowledged; ++n) {
      ASSERT_EQ(store->Get("sha256:" + base::Sha256Hex(blob(n))), blob(n)) << n;
    }
  }
}

TEST_F(DirectoryBlobStoreTest, AFullDiskIsSaidAndLeavesNothingBehind) {
  auto store = Open();
  const std::string data = base::RandomBytes(100'000);
  {
    const FileSizeLimit limit(50'000);
    auto put = store->Put(data);
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, base::Code::kResourceExhausted);
    EXPECT_EQ(put.error().reason, "store.disk_full");
  }
  EXPECT_TRUE(base::ListDirectory(dir_->path() + "/blobs/tmp")->empty());
  const std::string name = store->Put(data).value();
  EXPECT_EQ(store->Get(name), data);
}

TEST_F(DirectoryBlobStoreTest, RefusesABombAndAnOversizedBlob) {
  std::string bomb = blobs::EncodeBlobFile(std::string(1'000'000, 'b'));
  bomb[8] = 10;  // claims ten bytes
  bomb[9] = bomb[10] = 0;
  auto decoded = blobs::DecodeBlobFile(bomb);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().reason, "blob.corrupt");
}

}  // namespace
}  // namespace expanse::store
