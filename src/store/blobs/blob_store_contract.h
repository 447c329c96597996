// What every backend of BlobStore does, as tests. A backend's test file includes this once and says
//   INSTANTIATE_TEST_SUITE_P(Directory, BlobStoreContract, ::testing::Values(BlobBackend{...}));
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/crypto.h"
#include "base/files.h"
#include "base/time.h"
#include "store/blobs/blob_store.h"

namespace expanse::store {

struct BlobBackend {
  // Opens the store whose data is in `directory`; again after the first one has been destroyed.
  // Ages count by `clock`.
  std::function<base::Result<std::unique_ptr<BlobStore>>(const std::string& directory,
                                                         base::Clock& clock)>
      open;
};

class BlobStoreContract : public ::testing::TestWithParam<BlobBackend> {
 protected:
  void SetUp() override {
    auto dir = base::TempDir::Create();
    ASSERT_TRUE(dir);
    dir_.emplace(std::move(*dir));
    Reopen();
  }
  void Reopen() {
    store_.reset();
    auto opened = GetParam().open(dir_->path(), clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  std::optional<base::TempDir> dir_;
  base::FakeClock clock_;
  std::unique_ptr<BlobStore> store_;
};

TEST_P(BlobStoreContract, GivesBackEveryByteUnderItsDigest) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const std::string blobs[] = {"", "x", all, std::string(300'000, 'a'), base::RandomBytes(100'000)};
  std::vector<std::string> names;
  for (const std::string& blob : blobs) {
    auto name = store_->Put(blob);
    ASSERT_TRUE(name) << name.error().message;
    EXPECT_EQ(*name, "sha256:" + base::Sha256Hex(blob));
    names.push_back(*name);
  }
  Reopen();
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(store_->Get(names[i]), blobs[i]);
}

TEST_P(BlobStoreContract, PuttingAgainGivesTheSameName) {
  auto first = store_->Put("the same");
  ASSERT_TRUE(first);
  EXPECT_EQ(store_->Put("the same"), *first);
  EXPECT_EQ(store_->Get(*first), "the same");
}

TEST_P(BlobStoreContract, MissingAndMalformedNamesAreNotFound) {
  for (const std::string& name :
       {"sha256:" + std::string(64, '0'), std::string("sha256:12"), std::string(),
        std::string("sha256:") + std::string(64, 'A'), std::string("sha256:../../../../etc/passwd"),
        std::string("md5:") + std::string(64, '0')}) {
    auto got = store_->Get(name);
    ASSERT_FALSE(got) << name;
    EXPECT_EQ(got.error().code, base::Code::kNotFound);
    EXPECT_EQ(got.error().reason, "blob.not_found");
  }
}

TEST_P(BlobStoreContract, SweepsWhatIsOldAndUnreferenced) {
  const auto put = [&](const std::string& data) { return store_->Put(data).value(); };
  const std::string kept = put("kept");
  const std::string gone = put("gone");
  const std::string again = put("again");
  clock_.Advance(std::chrono::hours(2));
  const std::string young = put("young");
  put("again");  // as young as a new one
  std::set<std::string> asked;
  auto removed = store_->Sweep(clock_.Now() - std::chrono::hours(1), [&](std::string_view name) {
    asked.insert(std::string(name));
    return name == kept;
  });
  EXPECT_EQ(removed, 1U);
  EXPECT_EQ(asked, (std::set<std::string>{kept, gone}));
  EXPECT_EQ(store_->Get(gone).error().reason, "blob.not_found");
  for (const std::string& name : {kept, again, young}) EXPECT_TRUE(store_->Get(name));
  EXPECT_EQ(put("gone"), gone);
  EXPECT_EQ(store_->Get(gone), "gone");
}

TEST_P(BlobStoreContract, ABlobPutDuringASweepStays) {
  const std::string name = store_->Put("contended").value();
  clock_.Advance(std::chrono::hours(2));
  auto removed = store_->Sweep(clock_.Now() - std::chrono::hours(1), [&](std::string_view) {
    EXPECT_TRUE(store_->Put("contended"));  // between the question and the removal
    return false;
  });
  EXPECT_EQ(removed, 0U);
  EXPECT_EQ(store_->Get(name), "contended");
}

TEST_P(BlobStoreContract, ManyThreadsPutAndGetTheSameBlobs) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const std::string data = "blob " + std::to_string(i);
        auto name = store_->Put(data);
        if (!name || store_->Get(*name) != data) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace expanse::store
