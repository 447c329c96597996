#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace expanse::base {
namespace {

std::string DirectoryOf(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    Reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::Reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<std::string> ReadFd(int fd, std::size_t limit) {
  std::string data;
  std::size_t chunk = 4096;
  while (true) {
    const std::size_t used = data.size();
    data.resize(used + chunk);
    const ssize_t got = ::read(fd, data.data() + used, chunk);
    if (got < 0) {
      data.resize(used);
      if (errno == EINTR) continue;
      return FailErrno(errno, "read");
    }
    data.resize(used + static_cast<std::size_t>(got));
    if (data.size() > limit) {
      return Fail(Code::kResourceExhausted, "files.too_large",
                  fmt::format("the file is larger than {} bytes", limit));
    }
    if (got == 0) return data;
    chunk = std::min<std::size_t>(chunk * 2, 1U << 20);
  }
}

Result<std::string> ReadFile(const std::string& path, std::size_t limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FailErrno(errno, "open " + path);
  auto data = ReadFd(fd.get(), limit);
  if (!data) return std::unexpected(std::move(data.error()).With(path));
  return data;
}

Status WriteFd(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t put = ::write(fd, data.data(), data.size());
    if (put < 0) {
      if (errno == EINTR) continue;
      return FailErrno(errno, "write");
    }
    data.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Status PwriteFd(int fd, std::string_view data, std::int64_t offset) {
  while (!data.empty()) {
    const ssize_t put = ::pwrite(fd, data.data(), data.size(), offset);
    if (put < 0) {
      if (errno == EINTR) continue;
      return FailErrno(errno, "write");
    }
    data.remove_prefix(static_cast<std::size_t>(put));
    offset += put;
  }
  return {};
}

Status WriteFileAtomically(const std::string& path, std::string_view data, mode_t mode) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = fmt::format("{}.tmp{}.{}", path, ::getpid(), counter.fetch_add(1));
  UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd.valid()) return FailErrno(errno, "create " + temporary);
  auto written = [&]() -> Status {
    if (::fchmod(fd.get(), mode) != 0) return FailErrno(errno, "chmod");
    EXPANSE_RETURN_IF_ERROR(WriteFd(fd.get(), data));
    if (::fsync(fd.get()) != 0) return FailErrno(errno, "fsync");
    if (::rename(temporary.c_str(), path.c_str()) != 0) return FailErrno(errno, "rename");
    return {};
  }();
  if (!written) {
    ::unlink(temporary.c_str());
    return std::unexpected(std::move(written.error()).With("writing " + path));
  }
  return FsyncDirectory(DirectoryOf(path));
}

Status MakeDirectories(const std::string& path, mode_t mode) {
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST)
      return FailErrno(errno, "mkdir " + part);
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return FailErrno(errno, path);
  if (!S_ISDIR(info.st_mode)) return FailErrno(ENOTDIR, path);
  return {};
}

Status FsyncDirectory(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FailErrno(errno, "open " + path);
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return FailErrno(errno, "fsync " + path);
  return {};
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FailErrno(errno, "unlink " + path);
  return {};
}

Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return FailErrno(error.value(), "remove " + path);
  return {};
}

Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return FailErrno(errno, "open " + path);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string JoinPath(std::string_view a, std::string_view b) {
  std::string path(a);
  while (!path.empty() && path.back() == '/') path.pop_back();
  while (!b.empty() && b.front() == '/') b.remove_prefix(1);
  path += '/';
  path += b;
  return path;
}

Result<TempDir> TempDir::Create(std::string_view prefix) {
  const char* base = std::getenv("TMPDIR");
  std::string path = JoinPath(base != nullptr && *base != '\0' ? base : "/tmp", prefix) + ".XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return FailErrno(errno, "mkdtemp " + path);
  return TempDir(path);
}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempDir::~TempDir() {
  if (!path_.empty()) (void)RemoveTree(path_);
}

}  // namespace expanse::base
