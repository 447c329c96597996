#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace expanse::base {
namespace {

class FilesTest : public testing::Test {
 protected:
  FilesTest() : temp_(*TempDir::Create()) {}
  std::string Path(std::string_view name) const { return JoinPath(temp_.path(), name); }
  static mode_t ModeOf(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }
  TempDir temp_;
};

TEST_F(FilesTest, WritesAtomicallyAndReadsBack) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "one", 0600));
  EXPECT_EQ(ReadFile(Path("a")), "one");
  EXPECT_EQ(ModeOf(Path("a")), 0600U);
  const mode_t before = ::umask(0077);
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "two", 0644));
  ::umask(before);
  EXPECT_EQ(ReadFile(Path("a")), "two");
  EXPECT_EQ(ModeOf(Path("a")), 0644U) << "whatever the umask";
  EXPECT_EQ(ListDirectory(temp_.path())->size(), 1U) << "no temporary file is left";
}

TEST_F(FilesTest, AFailedWriteLeavesNothing) {
  EXPECT_EQ(WriteFileAtomically(Path("no/such"), "x", 0600).error().code, Code::kNotFound);
  ASSERT_TRUE(MakeDirectories(Path("d/sub")));
  EXPECT_FALSE(WriteFileAtomically(Path("d"), "x", 0600)) << "a directory is not replaced";
  EXPECT_EQ(*ListDirectory(temp_.path()), std::vector<std::string>{"d"});
}

TEST_F(FilesTest, WritesThroughALinkByReplacingIt) {
  ASSERT_TRUE(WriteFileAtomically(Path("real"), "kept", 0600));
  ASSERT_EQ(::symlink("real", Path("link").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new", 0600));
  EXPECT_EQ(ReadFile(Path("real")), "kept");
  EXPECT_EQ(ReadFile(Path("link")), "new");
}

TEST_F(FilesTest, BoundsWhatItReads) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), std::string(10000, 'x'), 0600));
  EXPECT_EQ(ReadFile(Path("a"), 10000)->size(), 10000U);
  EXPECT_EQ(ReadFile(Path("a"), 9999).error().reason, "files.too_large");
  EXPECT_EQ(ReadFile("/dev/zero", 1000).error().reason, "files.too_large") << "and ends";
  EXPECT_FALSE(ReadFile("/proc/self/status")->empty()) << "a file without a size";
  EXPECT_EQ(ReadFile(Path("none")).error().code, Code::kNotFound);
  EXPECT_EQ(ReadFile(temp_.path()).error().code, Code::kInvalidArgument);
}

TEST_F(FilesTest, WritesAtAnOffset) {
  const UniqueFd fd(::open(Path("a").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_TRUE(WriteFd(fd.get(), "abcdef"));
  ASSERT_TRUE(PwriteFd(fd.get(), "XY", 2));
  EXPECT_EQ(ReadFile(Path("a")), "abXYef");
  EXPECT_EQ(WriteFd(-1, "x").error().reason, "os.EBADF");
}

TEST_F(FilesTest, MakesAndRemovesTrees) {
  ASSERT_TRUE(MakeDirectories(Path("a/b//c/"), 0700));
  ASSERT_TRUE(MakeDirectories(Path("a/b/c"), 0755)) << "again";
  EXPECT_EQ(ModeOf(Path("a/b/c")), 0700U) << "existing ones keep their mode";
  ASSERT_TRUE(WriteFileAtomically(Path("a/file"), "", 0600));
  EXPECT_FALSE(MakeDirectories(Path("a/file")));
  EXPECT_FALSE(MakeDirectories(Path("a/file/x")));
  ASSERT_TRUE(MakeDirectories(Path("outside")));
  ASSERT_TRUE(WriteFileAtomically(Path("outside/kept"), "", 0600));
  ASSERT_EQ(::symlink(Path("outside").c_str(), Path("a/link").c_str()), 0);
  ASSERT_TRUE(RemoveTree(Path("a")));
  EXPECT_FALSE(Exists(Path("a")));
  EXPECT_TRUE(Exists(Path("outside/kept"))) << "links are not followed";
  EXPECT_TRUE(RemoveTree(Path("a")));
  EXPECT_TRUE(RemoveFile(Path("a")));
  EXPECT_TRUE(MakeDirectories("/"));
}

TEST_F(FilesTest, ListsSorted) {
  for (const char* name : {"b", "a", ".c"}) ASSERT_TRUE(WriteFileAtomically(Path(name), "", 0600));
  EXPECT_EQ(*ListDirectory(temp_.path()), (std::vector<std::string>{".c", "a", "b"}));
  EXPECT_EQ(ListDirectory(Path("none")).error().code, Code::kNotFound);
}

TEST(JoinPath, KeepsExactlyOneSlash) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "/b"), "a/b");
  EXPECT_EQ(JoinPath("/", "proc"), "/proc");
  EXPECT_EQ(JoinPath("root", "/proc"), "root/proc");
}

TEST(UniqueFd, OwnsItsDescriptor) {
  UniqueFd a(::open("/dev/null", O_RDONLY));
  const int number = a.get();
  UniqueFd b(std::move(a));
  EXPECT_FALSE(a.valid());  // NOLINT(bugprone-use-after-move): this is what is tested
  EXPECT_EQ(b.get(), number);
  b.Reset();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
  UniqueFd c(::open("/dev/null", O_RDONLY));
  const int released = c.Release();
  EXPECT_EQ(::close(released), 0);
}

TEST(TempDir, IsRemovedWithItsContents) {
  std::string path;
  {
    auto temp = TempDir::Create("files-test");
    ASSERT_TRUE(temp);
    path = temp->path();
    ASSERT_TRUE(MakeDirectories(path + "/x/y"));
    const TempDir moved = std::move(*temp);
    EXPECT_TRUE(Exists(path));
  }
  EXPECT_FALSE(Exists(path));
}

}  // namespace
}  // namespace expanse::base
