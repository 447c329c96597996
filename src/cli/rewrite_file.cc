#include "cli/rewrite_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace expanse::cli {
namespace {

std::int64_t ChangedNanos(const struct stat& info) {
  return info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
}

base::Result<struct stat> StatSame(int fd, const std::string& path, const ReadFileState& read) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return base::FailErrno(errno, path);
  if (info.st_dev != read.device || info.st_ino != read.inode ||
      ChangedNanos(info) != read.changed_nanos ||
      static_cast<std::uint64_t>(info.st_size) != read.text.size()) {
    return base::Fail(base::Code::kAborted, "file.changed",
                      fmt::format("{} was changed by somebody else just now", path));
  }
  return info;
}

// Access lists, security labels, users' own attributes. False when one cannot be given.
bool CopyAttributes(int from, int to) {
  std::array<char, 64U << 10> names{};
  const ssize_t size = ::flistxattr(from, names.data(), names.size());
  if (size < 0) return errno == ENOTSUP;
  const std::string_view list(names.data(), static_cast<std::size_t>(size));
  for (std::string_view name : base::Split(list, '\0')) {
    if (name.empty()) continue;
    const std::string key(name);
    std::vector<char> value(64U << 10);
    const ssize_t got = ::fgetxattr(from, key.c_str(), value.data(), value.size());
    if (got < 0) return false;
    if (::fsetxattr(to, key.c_str(), value.data(), static_cast<std::size_t>(got), 0) != 0)
      return false;
  }
  return true;
}

// The name of a file that was links to it; `path` itself when it is none.
std::string Resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string out(real);
  ::free(real);
  return out;
}

std::string DirectoryOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A file beside `path` with its mode, owner and attributes and the new text, ready to take its
// name.
struct Beside {
  base::UniqueFd fd;
  std::string name;
  bool alike = false;
};

base::Result<Beside> MakeBeside(const std::string& path, int original, const struct stat& info,
                                std::string_view text) {
  std::string name = path + ".expanse-XXXXXX";
  Beside beside;
  beside.fd = base::UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
  if (!beside.fd.valid()) return base::FailErrno(errno, "create " + name);
  beside.name = name;
  const int fd = beside.fd.get();
  auto written = base::WriteFd(fd, text);
  if (!written) {
    ::unlink(name.c_str());
    return std::unexpected(std::move(written).error().With("writing " + name));
  }
  // chown first: it takes set-id bits away. It may fail where nothing is to be changed.
  struct stat made{};
  beside.alike = (::fchown(fd, info.st_uid, info.st_gid) == 0 || errno == EPERM) &&
                 ::fstat(fd, &made) == 0 && made.st_uid == info.st_uid &&
                 made.st_gid == info.st_gid && ::fchmod(fd, info.st_mode & 07777) == 0 &&
                 CopyAttributes(original, fd) && ::fsync(fd) == 0;
  return beside;
}

base::Status WriteOver(const std::string& path, std::string_view text) {
  const base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return base::FailErrno(errno, path);
  EXPANSE_RETURN_IF_ERROR(base::PwriteFd(fd.get(), text, 0));
  if (::ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0)
    return base::FailErrno(errno, path);
  if (::fsync(fd.get()) != 0) return base::FailErrno(errno, path);
  return {};
}

// Keeps a copy of what was there until the new text is safe.
base::Status WriteOverWithCopy(const std::string& path, const ReadFileState& read,
                               std::string_view text) {
  std::string copy = path + ".expanse-XXXXXX";
  base::UniqueFd fd(::mkostemp(copy.data(), O_CLOEXEC));
  if (fd.valid()) {  // where the directory is not ours there is none
    auto kept = base::WriteFd(fd.get(), read.text);
    if (!kept || ::fsync(fd.get()) != 0) {
      ::unlink(copy.c_str());
      return base::Fail(base::Code::kInternal, "file.copy",
                        fmt::format("{}: no room for a copy of it", path));
    }
  }
  auto written = WriteOver(path, text);
  if (!written && fd.valid()) {
    return base::Fail(
        base::Code::kDataLoss, "file.torn",
        fmt::format("{}: {}; what it was is in {}", path, written.error().message, copy));
  }
  if (fd.valid()) ::unlink(copy.c_str());
  return written;
}

}  // namespace

base::Result<ReadFileState> ReadForRewrite(const std::string& path, std::size_t limit) {
  // Not blocking on a FIFO that nobody writes to.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR)
      return base::Fail(base::Code::kNotFound, "files.not_found", path + ": no such file");
    return base::FailErrno(errno, path);
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::FailErrno(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return base::Fail(base::Code::kInvalidArgument, "files.not_regular",
                      fmt::format("{} is {}", path,
                                  S_ISDIR(info.st_mode) ? "a directory" : "not a regular file"));
  }
  ReadFileState state;
  EXPANSE_ASSIGN_OR_RETURN(state.text, base::ReadFd(fd.get(), limit));
  state.device = info.st_dev;
  state.inode = info.st_ino;
  state.changed_nanos = ChangedNanos(info);
  return state;
}

base::Status RewriteFile(const std::string& path, const ReadFileState& read,
                         std::string_view text) {
  const std::string real = Resolved(path);
  const base::UniqueFd original(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!original.valid()) return base::FailErrno(errno, path);
  EXPANSE_ASSIGN_OR_RETURN(const struct stat info, StatSame(original.get(), path, read));
  // A rename asks the directory for leave, not the file: one that is read-only stays as it is.
  if (::faccessat(AT_FDCWD, real.c_str(), W_OK, AT_EACCESS) != 0)
    return base::FailErrno(errno, path);
  if (info.st_nlink > 1) return WriteOverWithCopy(real, read, text);
  auto beside = MakeBeside(real, original.get(), info, text);
  if (!beside) return WriteOverWithCopy(real, read, text);
  if (!beside->alike) {
    ::unlink(beside->name.c_str());
    return WriteOverWithCopy(real, read, text);
  }
  // Somebody may have saved the file meanwhile.
  const base::UniqueFd now(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto same = now.valid() ? StatSame(now.get(), path, read)
                                : base::Result<struct stat>(base::FailErrno(errno, path));
  if (!same || ::rename(beside->name.c_str(), real.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside->name.c_str());
    if (!same) return std::unexpected(same.error());
    return base::FailErrno(error, path);
  }
  return base::FsyncDirectory(DirectoryOf(real));
}

}  // namespace expanse::cli
