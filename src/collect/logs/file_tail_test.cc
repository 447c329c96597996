#include "collect/logs/file_tail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/files.h"
#include "collect/logs/tail_ring.h"

namespace expanse::collect {
namespace {

using std::chrono::seconds;

class FileTailTest : public testing::Test {
 protected:
  void Append(std::string_view text) {
    base::UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    ASSERT_TRUE(base::WriteFd(fd.get(), text));
    SetTime(++time_);  // a file system's clock may be slower than this test
  }
  void SetTime(std::int64_t at) {
    const timespec times[2] = {{at, 0}, {at, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }
  base::Result<std::optional<evidence::LogTail>> Look(bool final = false) {
    base::UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return LookAtFile(fd.get(), options_, final, state_);
  }
  base::Status Skip(base::WallTime started) {
    base::UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return SkipOldContents(fd.get(), started, state_);
  }

  base::TempDir dir_ = base::TempDir::Create("filetail").value();
  std::string path_ = base::JoinPath(dir_.path(), "out");
  std::int64_t time_ = 1'700'000'000;
  FileTailOptions options_{
      .tail = {.tail = 64, .context = 64, .error_before = 32, .error_after = 48},
      .scan_bytes = 1U << 20};
  FileTailState state_;
};

TEST_F(FileTailTest, ShowsOnlyWhatIsNew) {
  Append("one\ntwo\n");
  auto tail = Look();
  ASSERT_TRUE(tail && *tail);
  EXPECT_EQ((*tail)->data, "one\ntwo\n");
  EXPECT_FALSE(Look()->has_value());
  EXPECT_FALSE(Look(/*final=*/true)->has_value());
  Append("three\n");
  EXPECT_EQ((*Look())->data, "one\ntwo\nthree\n");
  EXPECT_EQ(state_.restarts, 0U);
}

TEST_F(FileTailTest, GivesTheUnfinishedLineAtTheEnd) {
  Append("done\npassword=hun");
  EXPECT_EQ((*Look())->data, "done\n");
  EXPECT_FALSE(Look()->has_value());
  const auto tail = Look(/*final=*/true);
  ASSERT_TRUE(tail->has_value());
  EXPECT_EQ((*tail)->data, "done\npassword=[redacted]");
  EXPECT_FALSE(Look(/*final=*/true)->has_value());
}

TEST_F(FileTailTest, AnEmptyFileHasATailAtTheEndOnly) {
  Append("");
  EXPECT_FALSE(Look()->has_value());
  const auto tail = Look(/*final=*/true);
  ASSERT_TRUE(tail->has_value());
  EXPECT_EQ((*tail)->data, "");
  EXPECT_EQ((*tail)->total_bytes, 0U);
}

TEST_F(FileTailTest, IsTheSameAsTheRingThatSawItAll) {
  TailRing ring(options_.tail);
  std::string all;
  for (int i = 0; i < 300; ++i) {
    std::string line = "step " + std::to_string(i) + " token=abcdef" + std::to_string(i) + "\n";
    if (i == 40) line += "ValueError: bad shape\n";
    ring.Append(line);
    all += line;
    Append(line);
    const auto tail = Look();
    ASSERT_TRUE(tail && *tail);
    const auto want = ring.Snapshot(/*final=*/false);
    EXPECT_EQ((*tail)->data, want.data) << i;
    EXPECT_EQ((*tail)->offset, want.offset);
    EXPECT_EQ((*tail)->total_bytes, want.total_bytes);
    EXPECT_EQ((*tail)->first_error_offset, want.first_error_offset) << i;
    EXPECT_EQ((*tail)->first_error, want.first_error) << i;
  }
}

TEST_F(FileTailTest, FindsTheFirstErrorInSteps) {
  options_.scan_bytes = 100'000;
  Append(std::string(250'000, '.') + "\n");
  Append("RuntimeError: gone\n");
  Append(std::string(1'000, '.') + "\n");
  EXPECT_EQ((*Look())->first_error, "");
  EXPECT_EQ(state_.scanned, 100'000U);
  EXPECT_FALSE(Look()->has_value());  // nothing new to show yet, but the search goes on
  const auto tail = Look();
  ASSERT_TRUE(tail->has_value());
  EXPECT_NE((*tail)->first_error.find("RuntimeError: gone"), std::string::npos);
  EXPECT_EQ(state_.error_at, 250'000U);  // the break in front of it included
}

TEST_F(FileTailTest, FindsAnErrorThatLiesAcrossTwoPieces) {
  for (std::size_t before = 65'500; before < 65'540; ++before) {
    ::unlink(path_.c_str());
    state_ = {};
    Append(std::string(before, '.') + "\nTraceback (most recent call last):\n" +
           std::string(300, '.') + "\n");
    const auto tail = Look();
    ASSERT_TRUE(tail && *tail);
    EXPECT_NE((*tail)->first_error.find("Traceback (most recent"), std::string::npos) << before;
  }
}

TEST_F(FileTailTest, StartsOverWhenTheFileIsTruncatedOrReplaced) {
  Append("a long first life\nKilled\n" + std::string(200, 'x') + "\n");
  EXPECT_NE((*Look())->first_error.find("Killed"), std::string::npos);
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  Append("second\n");
  auto tail = Look();
  EXPECT_EQ((*tail)->data, "second\n");
  EXPECT_EQ((*tail)->total_bytes, 7U);
  EXPECT_EQ((*tail)->first_error, "");
  EXPECT_EQ(state_.restarts, 1U);
  // Rotated: another file under the name, and a longer one.
  ASSERT_EQ(::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  Append("third, and longer than the one before\n");
  EXPECT_EQ((*Look())->data, "third, and longer than the one before\n");
  EXPECT_EQ(state_.restarts, 2U);
}

TEST_F(FileTailTest, NoticesAFileThatWasWrittenAnewAndLonger) {
  Append("first\n");
  (void)Look();
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  Append("other beginning, and longer\n");
  EXPECT_EQ((*Look())->data, "other beginning, and longer\n");
  EXPECT_EQ(state_.restarts, 1U);
}

TEST_F(FileTailTest, LeavesOutWhatEarlierRunsAppended) {
  Append("of yesterday\nFatal: yes\n");
  ASSERT_TRUE(Skip(base::WallTime(seconds(time_ + 1000))));
  EXPECT_FALSE(Look()->has_value());
  Append("of today\n");
  const auto tail = Look(/*final=*/true);
  ASSERT_TRUE(tail->has_value());
  EXPECT_EQ((*tail)->data, "of today\n");
  EXPECT_EQ((*tail)->offset, 0U);
  EXPECT_EQ((*tail)->total_bytes, 9U);
  EXPECT_EQ((*tail)->first_error, "");
}

TEST_F(FileTailTest, KeepsWhatTheJobItselfMayHaveWritten) {
  Append("already written\n");
  ASSERT_TRUE(Skip(base::WallTime(seconds(time_ - 1))));
  EXPECT_EQ((*Look())->data, "already written\n");
}

TEST_F(FileTailTest, ShowsAnOldFileFromItsStartWhenTheJobTruncatesIt) {
  Append("of yesterday, quite long\n");
  ASSERT_TRUE(Skip(base::WallTime(seconds(time_ + 1000))));
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  Append("today\n");
  const auto tail = Look();
  EXPECT_EQ((*tail)->data, "today\n");
  EXPECT_EQ((*tail)->total_bytes, 6U);
}

TEST_F(FileTailTest, ReadsOnlyTheEndOfAHugeFile) {
  Append("Error: early\n");
  ASSERT_EQ(::truncate(path_.c_str(), std::int64_t{1} << 40), 0);  // sparse
  base::UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  ASSERT_TRUE(base::WriteFd(fd.get(), "\nlate\n"));
  const auto tail = Look(/*final=*/true);
  ASSERT_TRUE(tail && *tail);
  EXPECT_TRUE((*tail)->data.ends_with("late\n"));
  EXPECT_LE((*tail)->data.size(), 64U);
  EXPECT_EQ((*tail)->total_bytes, (std::uint64_t{1} << 40) + 6);
}

TEST_F(FileTailTest, FailsOnAFileThatCannotBeRead) {
  const base::UniqueFd directory(::open(dir_.path().c_str(), O_RDONLY | O_CLOEXEC));
  state_.seen = true;
  state_.head_size = 10;
  FileTailState before = state_;
  struct stat info{};
  ASSERT_EQ(::fstat(directory.get(), &info), 0);
  before.device = info.st_dev;
  before.inode = info.st_ino;
  state_ = before;
  EXPECT_FALSE(LookAtFile(directory.get(), options_, false, state_));
  EXPECT_EQ(state_.size, before.size);
}

}  // namespace
}  // namespace expanse::collect
