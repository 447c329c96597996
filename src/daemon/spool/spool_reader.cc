#include "daemon/spool/spool_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

namespace expanse::daemon::spool {
namespace {

constexpr const char* kQuarantine = ".quarantine";
constexpr std::string_view kClockFile = ".clock";
// Of a host in a name that has to fit into 255 bytes with reason and segment.
constexpr std::size_t kMaxHostInName = 120;
// File systems whose clients learn of a new file when their caches run out.
constexpr std::array<unsigned long, 5> kLateFileSystems = {
    NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, FUSE_SUPER_MAGIC};
// Names looked at in one listing: whoever fills a directory must not hold the controller.
constexpr std::size_t kMaxEntries = 1'000'000;

std::unexpected<base::Error> Forged(std::string message) {
  return base::Fail(base::Code::kPermissionDenied, "spool.forged", std::move(message));
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Directory = std::unique_ptr<DIR, CloseDir>;

base::Result<Directory> ListingOf(int fd) {
  base::UniqueFd copy(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy.valid()) return base::FailErrno(errno, "open spool directory");
  Directory dir(::fdopendir(copy.get()));
  if (dir == nullptr) return base::FailErrno(errno, "list spool directory");
  (void)copy.Release();
  return dir;
}

// A name in an open directory as a path: it goes through no directory that could be exchanged.
std::string PathIn(int fd, std::string_view name) {
  return fmt::format("/proc/self/fd/{}/{}", fd, name);
}

std::int64_t Nanoseconds(const timespec& time) {
  return std::int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

base::WallTime ModifiedAt(const struct stat& info) {
  return base::FromMicros(Nanoseconds(info.st_mtim) / 1000);
}

}  // namespace

SpoolReader::SpoolReader(SpoolReaderOptions options, FileIo& files)
    : options_(std::move(options)), files_(files) {}

bool SpoolReader::IsTrusted(uid_t owner) const {
  return owner == 0 || owner == ::geteuid() ||
         std::ranges::find(options_.owners, owner) != options_.owners.end();
}

base::Status SpoolReader::Open() {
  spool_.Reset();
  quarantine_.Reset();
  base::UniqueFd fd(::open(options_.spool.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    base::Error error = base::ErrnoError(errno, options_.spool);
    if (errno == ENOENT) error.reason = "spool.missing";
    return std::unexpected(std::move(error));
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::FailErrno(errno, options_.spool);
  const bool shared = (info.st_mode & 0022) != 0;
  if (!IsTrusted(info.st_uid) || (shared && (info.st_mode & S_ISVTX) == 0)) {
    return base::Fail(base::Code::kPermissionDenied, "spool.untrusted",
                      fmt::format("{}: others could replace what is in it; give it to root or to "
                                  "the daemon's user with mode 0755 (or 1777 where samplers write "
                                  "as nobody)",
                                  options_.spool));
  }
  spool_ = std::move(fd);
  return {};
}

bool SpoolReader::IsStale() const {
  struct stat open{};
  struct stat named{};
  return ::fstat(spool_.get(), &open) != 0 || ::stat(options_.spool.c_str(), &named) != 0 ||
         open.st_dev != named.st_dev || open.st_ino != named.st_ino;
}

bool SpoolReader::SeesAtOnce() const {
  struct statfs info{};
  if (::fstatfs(spool_.get(), &info) != 0) return false;
  return std::ranges::find(kLateFileSystems, static_cast<unsigned long>(info.f_type)) ==
         kLateFileSystems.end();
}

std::optional<std::chrono::microseconds> SpoolReader::ServerSkew(base::WallTime now) {
  const std::string path = PathIn(spool_.get(), kClockFile);
  if (!files_.Remove(path)) return std::nullopt;
  auto fd = files_.Create(path);
  struct stat info{};
  if (!fd || !files_.Write(fd->get(), "\n", 0) || !files_.Sync(fd->get()) ||
      ::fstat(fd->get(), &info) != 0)
    return std::nullopt;
  return ModifiedAt(info) - now;
}

base::Result<Hosts> SpoolReader::ListHosts() const {
  EXPANSE_ASSIGN_OR_RETURN(const Directory dir, ListingOf(spool_.get()));
  Hosts hosts;
  std::size_t entries = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (++entries > kMaxEntries) break;
    const std::string_view name = entry->d_name;
    if (name.starts_with('.')) continue;
    struct stat info{};
    if (!IsHostName(name) ||
        ::fstatat(spool_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(info.st_mode)) {
      ++hosts.strange;
    } else if (!IsTrusted(info.st_uid) || (info.st_mode & 0022) != 0) {
      ++hosts.untrusted;
    } else {
      hosts.hosts.push_back({.name = std::string(name), .changed_ns = Nanoseconds(info.st_mtim)});
    }
  }
  std::ranges::sort(hosts.hosts, {}, &HostEntry::name);
  return hosts;
}

std::optional<std::int64_t> SpoolReader::ChangedAt(const std::string& host) const {
  struct stat info{};
  if (::fstatat(spool_.get(), host.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISDIR(info.st_mode))
    return std::nullopt;
  return Nanoseconds(info.st_mtim);
}

base::Result<base::UniqueFd> SpoolReader::OpenHost(const std::string& host, uid_t* owner) const {
  base::UniqueFd fd(
      ::openat(spool_.get(), host.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return base::FailErrno(errno, "open spool of " + host);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::FailErrno(errno, "stat spool of " + host);
  if (!IsTrusted(info.st_uid) || (info.st_mode & 0022) != 0)
    return Forged("others may write to the directory of " + host);
  if (owner != nullptr) *owner = info.st_uid;
  return fd;
}

base::Result<HostListing> SpoolReader::List(const std::string& host, std::size_t limit,
                                            const std::vector<std::string>& known) const {
  EXPANSE_ASSIGN_OR_RETURN(const base::UniqueFd fd, OpenHost(host, nullptr));
  EXPANSE_ASSIGN_OR_RETURN(const Directory dir, ListingOf(fd.get()));
  HostListing listing;
  // The oldest ones: a heap with the newest of them on top.
  std::vector<std::string> oldest;
  std::size_t entries = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (++entries > kMaxEntries) break;
    std::string name = entry->d_name;
    if (name.starts_with('.')) continue;
    if (!ParseSegmentName(name)) {
      ++listing.strange;
      continue;
    }
    if (std::ranges::binary_search(known, name)) continue;
    if (oldest.size() == limit) {
      listing.more = true;
      if (name >= oldest.front()) continue;
      std::ranges::pop_heap(oldest);
      oldest.pop_back();
    }
    oldest.push_back(std::move(name));
    std::ranges::push_heap(oldest);
  }
  std::ranges::sort(oldest);
  for (const std::string& name : oldest) listing.segments.push_back(*ParseSegmentName(name));
  return listing;
}

base::Result<SegmentFile> SpoolReader::Read(const std::string& host,
                                            const SegmentName& name) const {
  uid_t owner = 0;
  EXPANSE_ASSIGN_OR_RETURN(const base::UniqueFd dir, OpenHost(host, &owner));
  const std::string file = FormatSegmentName(name);
  // O_NONBLOCK: a FIFO under this name must not hold the controller.
  const base::UniqueFd fd(
      ::openat(dir.get(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ELOOP) return Forged("it is a symbolic link");
    if (errno == ENXIO) return Forged("it is not a regular file");
    return base::FailErrno(errno, "open segment");
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::FailErrno(errno, "stat segment");
  if (!S_ISREG(info.st_mode)) return Forged("it is not a regular file");
  if (info.st_nlink != 1) return Forged("it has more than one name");
  if ((info.st_mode & 0022) != 0) return Forged("others may write to it");
  if (info.st_uid != owner && info.st_uid != 0 && info.st_uid != ::geteuid())
    return Forged("it belongs to another user than its directory");
  if (static_cast<std::uint64_t>(info.st_size) > kMaxSegmentFile) {
    return base::Fail(base::Code::kResourceExhausted, "spool.too_large",
                      fmt::format("it has {} bytes", info.st_size));
  }
  SegmentFile read{.bytes = {}, .modified = ModifiedAt(info)};
  EXPANSE_ASSIGN_OR_RETURN(read.bytes, base::ReadFd(fd.get(), kMaxSegmentFile));
  return read;
}

base::Status SpoolReader::Remove(const std::string& host, const SegmentName& name) {
  EXPANSE_ASSIGN_OR_RETURN(const base::UniqueFd dir, OpenHost(host, nullptr));
  return files_.Remove(PathIn(dir.get(), FormatSegmentName(name)));
}

// Counts what earlier runs left there.
base::Status SpoolReader::OpenQuarantine() {
  if (quarantine_.valid()) return {};
  if (::mkdirat(spool_.get(), kQuarantine, 0700) != 0 && errno != EEXIST)
    return base::FailErrno(errno, "make quarantine");
  base::UniqueFd fd(
      ::openat(spool_.get(), kQuarantine, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return base::FailErrno(errno, "quarantine");
  if ((info.st_uid != 0 && info.st_uid != ::geteuid()) || (info.st_mode & 0022) != 0)
    return Forged("others may write to the quarantine");
  EXPANSE_ASSIGN_OR_RETURN(const Directory dir, ListingOf(fd.get()));
  quarantined_ = 0;
  quarantined_bytes_ = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." ||
        ::fstatat(fd.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    ++quarantined_;
    quarantined_bytes_ += static_cast<std::uint64_t>(info.st_size);
  }
  quarantine_ = std::move(fd);
  return {};
}

base::Status SpoolReader::Quarantine(const std::string& host, const SegmentName& name,
                                     std::string_view reason) {
  EXPANSE_ASSIGN_OR_RETURN(const base::UniqueFd dir, OpenHost(host, nullptr));
  const std::string file = FormatSegmentName(name);
  const std::string path = PathIn(dir.get(), file);
  struct stat info{};
  if (::fstatat(dir.get(), file.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? base::Status() : base::FailErrno(errno, "quarantine");
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (OpenQuarantine() && quarantined_ < options_.quarantine_files &&
      quarantined_bytes_ + size <= options_.quarantine_bytes) {
    const std::string to = PathIn(
        quarantine_.get(), fmt::format("{}.{}.{}", host.substr(0, kMaxHostInName), reason, file));
    if (files_.Rename(path, to)) {
      ++quarantined_;
      quarantined_bytes_ += size;
      return {};
    }
  }
  return files_.Remove(path);
}

}  // namespace expanse::daemon::spool
