#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace expanse::base {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Fail(Code::kInvalidArgument, "half.odd", "odd");
  return n / 2;
}
Result<int> Quarter(int n) {
  EXPANSE_ASSIGN_OR_RETURN(const int half, Half(n));
  EXPANSE_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}
Status Check(int n) {
  EXPANSE_RETURN_IF_ERROR(Half(n));
  return {};
}

TEST(Result, MacrosPassErrorsOn) {
  EXPECT_EQ(Quarter(8), 2);
  EXPECT_EQ(Quarter(6).error().reason, "half.odd");
  EXPECT_TRUE(Check(2));
  EXPECT_EQ(Check(1).error().code, Code::kInvalidArgument);
}

TEST(Result, ContextGoesInFront) {
  const Error error{Code::kNotFound, "x.y", "gone"};
  EXPECT_EQ(error.With("reading a").message, "reading a: gone");
  EXPECT_EQ(Error(error).With("b").With("a").message, "a: b: gone");
  EXPECT_EQ(error.With("a").reason, "x.y");
}

TEST(Result, CodeNamesAreTheOnesOfConnect) {
  EXPECT_EQ(CodeName(Code::kCancelled), "canceled");
  EXPECT_EQ(CodeName(Code::kUnauthenticated), "unauthenticated");
  for (int i = 1; i <= 16; ++i)
    EXPECT_EQ(CodeFromName(CodeName(static_cast<Code>(i))), static_cast<Code>(i));
  EXPECT_EQ(CodeFromName("ok"), Code::kUnknown);
  EXPECT_EQ(CodeFromName(""), Code::kUnknown);
}

TEST(Result, SystemErrorsHaveCodeAndReason) {
  EXPECT_EQ(ErrnoError(ENOENT, "open /x").code, Code::kNotFound);
  EXPECT_EQ(ErrnoError(ENOENT, "open /x").reason, "os.ENOENT");
  EXPECT_EQ(ErrnoError(ENOENT, "open /x").message, "open /x: No such file or directory");
  EXPECT_EQ(ErrnoError(EACCES, "").code, Code::kPermissionDenied);
  EXPECT_EQ(ErrnoError(ENOSPC, "").code, Code::kResourceExhausted);
  EXPECT_EQ(ErrnoError(99999, "").reason, "os.unknown");
}

TEST(ResultDeathTest, ABrokenInvariantEndsTheProgram) {
  EXPECT_DEATH(EXPANSE_CHECK(1 == 2), "broken invariant: 1 == 2");
}

}  // namespace
}  // namespace expanse::base
