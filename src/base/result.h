// Errors as values. Every fallible function returns Result<T> or Status; no exception crosses a
// function of ours. Error carries a canonical code (the gRPC/Connect set), a message for people and
// a stable machine-readable reason such as "outbox.disk_full".
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace expanse::base {

// Canonical codes; the numbers are those of gRPC and Connect
// (https://connectrpc.com/docs/protocol).
enum class Code : std::uint8_t {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "invalid_argument" and so on: the spelling on the wire and in logs.
std::string_view CodeName(Code code);
// The inverse; kUnknown for a spelling that is not one of the sixteen.
Code CodeFromName(std::string_view name);

struct Error {
  Code code = Code::kUnknown;
  std::string reason;   // stable, dotted, e.g. "config.permissions"; for programs
  std::string message;  // what was wrong and what to do; for people, never a secret

  // Adds context in front of the message: "reading /x: permission denied".
  [[nodiscard]] Error With(std::string_view context) const&;
  [[nodiscard]] Error With(std::string_view context) &&;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> Fail(Code code, std::string reason,
                                                 std::string message) {
  return std::unexpected(Error{code, std::move(reason), std::move(message)});
}

// The error of a failed system call: errno mapped to a canonical code, reason "os.<ENAME>".
[[nodiscard]] Error ErrnoError(int errno_value, std::string_view what);
[[nodiscard]] inline std::unexpected<Error> FailErrno(int errno_value, std::string_view what) {
  return std::unexpected(ErrnoError(errno_value, what));
}

// A broken invariant of ours: prints where and aborts. Never for what the world does.
[[noreturn]] void Panic(std::string_view what, const char* file, int line);

}  // namespace expanse::base

#define EXPANSE_CHECK(condition) \
  ((condition) ? void(0) : ::expanse::base::Panic(#condition, __FILE__, __LINE__))

#define EXPANSE_CONCAT_INNER(a, b) a##b
#define EXPANSE_CONCAT(a, b) EXPANSE_CONCAT_INNER(a, b)

// Returns the error of `expr` (a Status or Result) from the calling function, if it failed.
#define EXPANSE_RETURN_IF_ERROR(expr)                          \
  if (auto EXPANSE_CONCAT(expanse_status_, __LINE__) = (expr); \
      !EXPANSE_CONCAT(expanse_status_, __LINE__).has_value())  \
  return std::unexpected(std::move(EXPANSE_CONCAT(expanse_status_, __LINE__)).error())

// EXPANSE_ASSIGN_OR_RETURN(auto x, F()): x = *F(), or returns F()'s error.
#define EXPANSE_ASSIGN_OR_RETURN(lhs, expr) \
  EXPANSE_ASSIGN_OR_RETURN_INNER(EXPANSE_CONCAT(expanse_result_, __LINE__), lhs, expr)
#define EXPANSE_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr)                  \
  auto tmp = (expr);                                                    \
  if (!tmp.has_value()) return std::unexpected(std::move(tmp).error()); \
  lhs = std::move(*tmp)
