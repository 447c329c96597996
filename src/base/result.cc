#include "base/result.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace expanse::base {
namespace {

constexpr std::array<std::string_view, 17> kNames = {
    "ok",        "canceled",       "unknown",           "invalid_argument",   "deadline_exceeded",
    "not_found", "already_exists", "permission_denied", "resource_exhausted", "failed_precondition",
    "aborted",   "out_of_range",   "unimplemented",     "internal",           "unavailable",
    "data_loss", "unauthenticated"};

Code CodeFromErrno(int value) {
  switch (value) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case ENXIO:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case EEXIST:
      return Code::kAlreadyExists;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EFBIG:
      return Code::kResourceExhausted;
    case ETIMEDOUT:
      return Code::kDeadlineExceeded;
    case EAGAIN:
    case EINTR:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EIO:
    case ESTALE:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

}  // namespace

std::string_view CodeName(Code code) { return kNames[static_cast<std::size_t>(code)]; }

Code CodeFromName(std::string_view name) {
  for (std::size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Code>(i);
  }
  return Code::kUnknown;
}

Error Error::With(std::string_view context) const& { return Error(*this).With(context); }

Error Error::With(std::string_view context) && {
  message.insert(0, ": ");
  message.insert(0, context);
  return std::move(*this);
}

Error ErrnoError(int errno_value, std::string_view what) {
  const char* name = strerrorname_np(errno_value);
  std::array<char, 256> buffer{};
  const char* text = strerror_r(errno_value, buffer.data(), buffer.size());
  return Error{CodeFromErrno(errno_value), std::string("os.") + (name ? name : "unknown"),
               std::string(what) + ": " + text};
}

void Panic(std::string_view what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %.*s\n", file, line, static_cast<int>(what.size()),
               what.data());
  std::abort();
}

}  // namespace expanse::base
