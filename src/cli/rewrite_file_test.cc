#include "cli/rewrite_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"

namespace expanse::cli {
namespace {

class RewriteFileTest : public testing::Test {
 protected:
  RewriteFileTest() : directory_(*base::TempDir::Create("expanse-rewrite")) {
    EXPECT_TRUE(base::WriteFileAtomically(path_, "old\n", 0640));
  }
  struct stat Stat(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info;
  }
  std::string Text() { return base::ReadFile(path_).value_or("(none)"); }
  // Nothing of ours is left beside it.
  std::size_t Names() { return base::ListDirectory(directory_.path())->size(); }

  base::TempDir directory_;
  std::string path_ = directory_.path() + "/job.sh";
};

TEST_F(RewriteFileTest, ReplacesInOneStepAndKeepsTheMode) {
  ASSERT_EQ(::chmod(path_.c_str(), 04751), 0);
  const auto read = ReadForRewrite(path_, 1000);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->text, "old\n");
  const ino_t before = Stat(path_).st_ino;
  ASSERT_TRUE(RewriteFile(path_, *read, "new\n"));
  EXPECT_EQ(Text(), "new\n");
  EXPECT_EQ(Stat(path_).st_mode & 07777, 04751U);
  EXPECT_NE(Stat(path_).st_ino, before);
  EXPECT_EQ(Names(), 1U);
}

TEST_F(RewriteFileTest, KeepsSymbolicLinks) {
  const std::string link = directory_.path() + "/link";
  ASSERT_EQ(::symlink("job.sh", link.c_str()), 0);
  const auto read = ReadForRewrite(link, 1000);
  ASSERT_TRUE(read && RewriteFile(link, *read, "new\n"));
  struct stat info{};
  ASSERT_EQ(::lstat(link.c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  EXPECT_EQ(Text(), "new\n");
}

TEST_F(RewriteFileTest, KeepsHardLinks) {
  const std::string other = directory_.path() + "/other";
  ASSERT_EQ(::link(path_.c_str(), other.c_str()), 0);
  const auto read = ReadForRewrite(path_, 1000);
  ASSERT_TRUE(read && RewriteFile(path_, *read, "n\n"));
  EXPECT_EQ(Text(), "n\n");
  EXPECT_EQ(*base::ReadFile(other), "n\n");
  EXPECT_EQ(Stat(other).st_ino, Stat(path_).st_ino);
  EXPECT_EQ(Names(), 2U);
}

TEST_F(RewriteFileTest, KeepsAttributes) {
  if (::setxattr(path_.c_str(), "user.note", "x", 1, 0) != 0)
    GTEST_SKIP() << "no extended attributes on this file system";
  const auto read = ReadForRewrite(path_, 1000);
  ASSERT_TRUE(read && RewriteFile(path_, *read, "new\n"));
  char value = 0;
  EXPECT_EQ(::getxattr(path_.c_str(), "user.note", &value, 1), 1);
  EXPECT_EQ(value, 'x');
}

TEST_F(RewriteFileTest, KeepsTheOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(path_.c_str(), 12345, 54321), 0);
  const auto read = ReadForRewrite(path_, 1000);
  ASSERT_TRUE(read && RewriteFile(path_, *read, "new\n"));
  EXPECT_EQ(Stat(path_).st_uid, 12345U);
  EXPECT_EQ(Stat(path_).st_gid, 54321U);
  EXPECT_EQ(Stat(path_).st_mode & 07777, 0640U);
}

TEST_F(RewriteFileTest, LeavesAloneWhatSomebodyChanged) {
  const auto read = ReadForRewrite(path_, 1000);
  ASSERT_TRUE(read);
  ASSERT_TRUE(base::WriteFileAtomically(path_, "own\n", 0640));
  const auto status = RewriteFile(path_, *read, "new\n");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason, "file.changed");
  EXPECT_EQ(Text(), "own\n");
  EXPECT_EQ(Names(), 1U);
}

TEST_F(RewriteFileTest, ReadsRegularFilesOfABoundedSizeOnly) {
  EXPECT_EQ(ReadForRewrite(path_, 3).error().reason, "files.too_large");
  EXPECT_EQ(ReadForRewrite(directory_.path(), 100).error().reason, "files.not_regular");
  EXPECT_EQ(ReadForRewrite(path_ + "x", 100).error().code, base::Code::kNotFound);
  const std::string fifo = directory_.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(ReadForRewrite(fifo, 100).error().reason, "files.not_regular");
}

TEST_F(RewriteFileTest, ReadOnlyFilesStayAsTheyAre) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everything";
  ASSERT_EQ(::chmod(path_.c_str(), 0440), 0);
  const auto read = ReadForRewrite(path_, 1000);
  ASSERT_TRUE(read);
  EXPECT_EQ(RewriteFile(path_, *read, "new\n").error().code, base::Code::kPermissionDenied);
  EXPECT_EQ(Text(), "old\n");
}

}  // namespace
}  // namespace expanse::cli
