#include "schedulers/host/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/crypto.h"

namespace expanse::schedulers::host {
namespace {

constexpr std::array<std::string_view, 5> kSuffixes = {"", ".1-start", ".2-sources", ".3-tail",
                                                       ".4-end"};
constexpr std::size_t kUuidLength = 36;
// Of each kind; further ones are listed by the next Observe.
constexpr std::size_t kMaxListed = 20'000;

// Of a file in the directory. A daemon that is neither root nor us could not read 0600. Nobody can
// list a drop box, and the name has 74 random bits.
mode_t ModeIn(const struct stat& directory) {
  const bool readable =
      directory.st_uid == 0 || directory.st_uid == ::geteuid() || (directory.st_mode & 0044) != 0;
  return readable ? 0600 : 0644;
}

base::Status WriteInto(const std::string& directory, const SpoolEvent& event, bool durable) {
  const std::string data = EncodeSpoolEvent(event);
  if (data.size() > kMaxSpoolEvent) {
    return base::Fail(base::Code::kResourceExhausted, "spool.too_large",
                      "the event is too large for the spool");
  }
  base::UniqueFd dir(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return base::FailErrno(errno, directory);
  struct stat info{};
  if (::fstat(dir.get(), &info) != 0) return base::FailErrno(errno, directory);
  const mode_t mode = ModeIn(info);
  const std::string name = SpoolFileName(event.run_id, event.kind);
  const std::string temporary = fmt::format(".{}.{}", name, ::getpid());
  base::UniqueFd file(::openat(dir.get(), temporary.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) return base::FailErrno(errno, directory);
  auto written = [&]() -> base::Status {
    if (::fchmod(file.get(), mode) != 0) return base::FailErrno(errno, directory);
    EXPANSE_RETURN_IF_ERROR(base::WriteFd(file.get(), data));
    if (durable && ::fdatasync(file.get()) != 0) return base::FailErrno(errno, directory);
    if (::renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) != 0)
      return base::FailErrno(errno, directory);
    return {};
  }();
  if (!written) {
    ::unlinkat(dir.get(), temporary.c_str(), 0);
    return std::unexpected(std::move(written.error()).With("writing to the spool"));
  }
  return {};
}

// Moves one file between directories of possibly different file systems.
bool MoveFile(const std::string& from, const std::string& to_directory, const std::string& name) {
  const std::string to = base::JoinPath(to_directory, name);
  struct stat info{};
  if (::stat(to_directory.c_str(), &info) != 0) return false;
  const mode_t mode = ModeIn(info);
  if (mode != 0600 && ::chmod(from.c_str(), mode) != 0) return false;  // our own directory: no link
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return ::unlink(from.c_str()) == 0;  // a newer one is there
  if (errno != EXDEV) return false;
  const auto data = base::ReadFile(from, kMaxSpoolEvent);
  if (!data) return false;
  const std::string temporary =
      base::JoinPath(to_directory, fmt::format(".{}.{}", name, ::getpid()));
  base::UniqueFd file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) return false;
  if (::fchmod(file.get(), mode) != 0 || !base::WriteFd(file.get(), *data) ||
      ::fdatasync(file.get()) != 0 || ::rename(temporary.c_str(), to.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return false;
  }
  return ::unlink(from.c_str()) == 0;
}

std::unexpected<base::Error> Forged(std::string_view name, std::string_view what) {
  return base::Fail(base::Code::kPermissionDenied, "spool.forged",
                    fmt::format("spool file {}: {}", name, what));
}

}  // namespace

std::string SpoolFileName(std::string_view run_id, SpoolKind kind) {
  return fmt::format("{}{}", run_id, kSuffixes[static_cast<std::size_t>(kind)]);
}

std::optional<SpoolName> ParseSpoolFileName(std::string_view name) {
  if (name.size() <= kUuidLength || !base::IsUuid(name.substr(0, kUuidLength))) return std::nullopt;
  const auto found = std::find(kSuffixes.begin() + 1, kSuffixes.end(), name.substr(kUuidLength));
  if (found == kSuffixes.end()) return std::nullopt;
  return SpoolName{std::string(name.substr(0, kUuidLength)),
                   static_cast<SpoolKind>(found - kSuffixes.begin())};
}

std::string PrivateSpoolDirectory() {
  const char* home = std::getenv("HOME");
  std::string base = home != nullptr ? home : "";
  if (base.empty() || base.front() != '/') {
    std::array<char, 4096> buffer{};
    struct passwd entry{};
    struct passwd* found = nullptr;
    if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
        found == nullptr)
      return "";
    base = entry.pw_dir;
  }
  return base::JoinPath(base, ".expanse/spool/host");
}

SpoolWriter::SpoolWriter(std::string directory, std::string fallback)
    : directory_(std::move(directory)), fallback_(std::move(fallback)) {
  if (fallback_ == directory_) fallback_.clear();
  own_ = directory_ == PrivateSpoolDirectory();
}

base::Status SpoolWriter::Write(const SpoolEvent& event, bool durable) {
  base::Status status;
  if (trouble_.empty()) {
    // Its own private directory is made when it is wanted (not before: a home may hang); a shared
    // one is the daemon's to make.
    if (own_) (void)base::MakeDirectories(directory_, 0700);
    status = WriteInto(directory_, event, durable);
    // An event that is too large is so everywhere, and says nothing about the directory.
    if (status || status.error().reason == "spool.too_large") return status;
    trouble_ = status.error().message;
  } else {
    status = base::Fail(base::Code::kUnavailable, "spool.unwritable", trouble_);
  }
  if (fallback_.empty() || !base::MakeDirectories(fallback_, 0700)) return status;
  if (WriteInto(fallback_, event, durable)) return {};
  return status;
}

std::size_t SpoolWriter::MoveLeftovers(std::size_t limit) {
  if (fallback_.empty() || !trouble_.empty()) return 0;
  const auto names = base::ListDirectory(fallback_);
  if (!names) return 0;
  std::size_t moved = 0;
  for (const std::string& name : *names) {
    if (moved >= limit) break;
    if (!ParseSpoolFileName(name)) continue;
    if (!MoveFile(base::JoinPath(fallback_, name), directory_, name)) break;
    ++moved;
  }
  return moved;
}

SpoolReader::SpoolReader(std::string directory, base::UniqueFd fd, uid_t owner, bool shared)
    : directory_(std::move(directory)), fd_(std::move(fd)), owner_(owner), shared_(shared) {}

base::Result<SpoolReader> SpoolReader::Open(const std::string& directory) {
  base::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    base::Error error = base::ErrnoError(errno, directory);
    if (errno == ENOENT) error.reason = "spool.missing";
    return std::unexpected(std::move(error));
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::FailErrno(errno, directory);
  const bool shared = (info.st_mode & 0022) != 0;
  if ((info.st_uid != 0 && info.st_uid != ::geteuid()) ||
      (shared && (info.st_mode & S_ISVTX) == 0)) {
    return base::Fail(
        base::Code::kPermissionDenied, "spool.untrusted",
        fmt::format("{}: others could replace files in it; give it to root or to the daemon's user "
                    "with mode 1733 (shared) or 0700",
                    directory));
  }
  return SpoolReader(directory, std::move(fd), info.st_uid, shared);
}

base::Result<std::vector<std::string>> SpoolReader::List(std::vector<std::string>& strange) const {
  base::UniqueFd fd(::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return base::FailErrno(errno, directory_);
  DIR* dir = ::fdopendir(fd.get());
  if (dir == nullptr) return base::FailErrno(errno, directory_);
  (void)fd.Release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    // Counted apart: whoever fills the directory with other files must not hide the events in it.
    auto& kind = ParseSpoolFileName(name) ? names : strange;
    if (kind.size() < kMaxListed) kind.emplace_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

base::Result<base::WallTime> SpoolReader::ModifiedAt() const {
  struct stat info{};
  if (::fstat(fd_.get(), &info) != 0) return base::FailErrno(errno, directory_);
  if (info.st_nlink == 0)
    return base::Fail(base::Code::kNotFound, "spool.missing", directory_ + " was removed");
  return base::WallTime(std::chrono::seconds(info.st_mtim.tv_sec) +
                        std::chrono::microseconds(info.st_mtim.tv_nsec / 1000));
}

base::Result<SpooledEvent> SpoolReader::Read(const std::string& name, base::WallTime now) const {
  const auto parsed = ParseSpoolFileName(name);
  if (!parsed) return Forged(name, "its name is not one of ours");
  // O_NONBLOCK: a FIFO under this name must not hold the daemon.
  base::UniqueFd file(
      ::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ELOOP) return Forged(name, "it is a symbolic link");
    if (errno == ENXIO) return Forged(name, "it is not a regular file");
    return base::FailErrno(errno, name);
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return base::FailErrno(errno, name);
  if (!S_ISREG(info.st_mode)) return Forged(name, "it is not a regular file");
  if (info.st_nlink != 1) return Forged(name, "it has more than one name");
  if ((info.st_mode & 0022) != 0) return Forged(name, "others may write to it");
  if (!shared_ && info.st_uid != owner_ && info.st_uid != 0)
    return Forged(name, "its owner cannot have written it");
  if (info.st_size < 0 || static_cast<std::size_t>(info.st_size) > kMaxSpoolEvent) {
    return base::Fail(base::Code::kResourceExhausted, "spool.too_large",
                      "spool file " + name + " is too large");
  }
  auto data = base::ReadFd(file.get(), kMaxSpoolEvent);
  if (!data) {
    base::Error error = std::move(data.error()).With(name);
    if (error.reason == "files.too_large") error.reason = "spool.too_large";
    return std::unexpected(std::move(error));
  }
  EXPANSE_ASSIGN_OR_RETURN(SpoolEvent event, DecodeSpoolEvent(*data, now));
  if (event.run_id != parsed->run_id || event.kind != parsed->kind)
    return Forged(name, "its name is another event's");
  return SpooledEvent{std::move(event), info.st_uid, info.st_ino};
}

bool SpoolReader::Remove(const std::string& name, ino_t inode) const {
  struct stat info{};
  if (::fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_ino != inode)
    return true;
  return ::unlinkat(fd_.get(), name.c_str(), 0) == 0 || errno == ENOENT;
}

void SpoolReader::Quarantine(const std::string& name, const std::string& quarantine,
                             std::size_t limit) const {
  const auto held = base::ListDirectory(quarantine);
  const bool room = held && held->size() < limit;
  const std::string to = base::JoinPath(quarantine, name);
  if (room && ::renameat(fd_.get(), name.c_str(), AT_FDCWD, to.c_str()) == 0) return;
  if (::unlinkat(fd_.get(), name.c_str(), 0) == 0) return;
  if (errno == EISDIR || errno == EPERM) ::unlinkat(fd_.get(), name.c_str(), AT_REMOVEDIR);
}

void SpoolReader::SweepTemporary(const std::vector<std::string>& strange, base::WallTime now,
                                 base::Duration age) const {
  for (const std::string& name : strange) {
    struct stat info{};
    if (!name.starts_with('.') ||
        ::fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (!S_ISDIR(info.st_mode) &&
        now - base::WallTime(std::chrono::seconds(info.st_mtim.tv_sec)) > age) {
      ::unlinkat(fd_.get(), name.c_str(), 0);
    }
  }
}

}  // namespace expanse::schedulers::host
