#include "store/blobs/directory_blob_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>

#include "base/crypto.h"
#include "base/files.h"
#include "base/log.h"
#include "store/blobs/blob_file.h"

namespace expanse::store {
namespace {

constexpr std::string_view kPrefix = "sha256:";
constexpr std::size_t kDigestDigits = 64;
constexpr std::size_t kFanoutDigits = 2;
constexpr std::chrono::hours kLeftoverAge{1};
constexpr std::size_t kHeadRoom = 4096;  // a blob's file is never larger than its bytes and this

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The digits of a well-formed name, or nothing: a name is never used as a path before this.
std::string_view DigestOf(std::string_view name) {
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  return name.size() == kDigestDigits && IsHex(name) ? name : std::string_view();
}

std::unexpected<base::Error> NotFound() {
  return base::Fail(base::Code::kNotFound, "blob.not_found", "there is no such blob");
}

base::Error DiskError(base::Error error) {
  for (const char* full : {"os.ENOSPC", "os.EDQUOT", "os.EFBIG"}) {
    if (error.reason != full) continue;
    return {base::Code::kResourceExhausted, "store.disk_full",
            "the disk of the store is full; free space or enlarge it, then try again"};
  }
  return error;
}

struct timespec ToTimespec(base::WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - seconds);
  return {.tv_sec = seconds.time_since_epoch().count(), .tv_nsec = rest.count()};
}

base::WallTime ModifiedAt(const struct stat& info) {
  return base::WallTime(std::chrono::seconds(info.st_mtim.tv_sec)) +
         std::chrono::floor<std::chrono::microseconds>(
             std::chrono::nanoseconds(info.st_mtim.tv_nsec));
}

base::Status Touch(int fd, base::WallTime time) {
  const struct timespec times[2] = {ToTimespec(time), ToTimespec(time)};
  if (::futimens(fd, times) != 0) return base::FailErrno(errno, "setting the time of a blob");
  return {};
}

base::Status WriteAndSync(int fd, std::string_view data, base::WallTime time) {
  EXPANSE_RETURN_IF_ERROR(base::WriteFd(fd, data));
  EXPANSE_RETURN_IF_ERROR(Touch(fd, time));
  if (::fsync(fd) != 0) return base::FailErrno(errno, "fsync");
  return {};
}

}  // namespace

base::Result<std::unique_ptr<DirectoryBlobStore>> DirectoryBlobStore::Open(const std::string& path,
                                                                           base::Clock& clock) {
  for (const char* part : {"sha256", "tmp"}) {
    EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(base::JoinPath(path, part), 0700));
  }
  EXPANSE_RETURN_IF_ERROR(base::FsyncDirectory(path));
  std::unique_ptr<DirectoryBlobStore> store(new DirectoryBlobStore(path, clock));
  EXPANSE_RETURN_IF_ERROR(store->CleanTmp());
  return store;
}

// Younger files may be another process's that is still writing.
base::Status DirectoryBlobStore::CleanTmp() {
  const std::string directory = base::JoinPath(path_, "tmp");
  EXPANSE_ASSIGN_OR_RETURN(const auto names, base::ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = base::JoinPath(directory, name);
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || ModifiedAt(info) + kLeftoverAge > clock_.Now())
      continue;
    EXPANSE_RETURN_IF_ERROR(base::RemoveFile(path));
  }
  return {};
}

std::string DirectoryBlobStore::PathOf(std::string_view digest) const {
  return fmt::format("{}/sha256/{}/{}", path_, digest.substr(0, kFanoutDigits),
                     digest.substr(kFanoutDigits));
}

base::Result<std::string> DirectoryBlobStore::Put(std::string_view data) {
  if (data.size() > blobs::kMaxBlobBytes) {
    return base::Fail(base::Code::kInvalidArgument, "blob.too_large",
                      fmt::format("a blob may have {} bytes at most", blobs::kMaxBlobBytes));
  }
  const std::string digest = base::Sha256Hex(data);
  const std::string path = PathOf(digest);
  const std::string directory = path.substr(0, path.rfind('/'));
  EXPANSE_ASSIGN_OR_RETURN(const bool there, Refresh(path, data));
  if (!there) {
    if (auto status = Write(path, directory, data); !status) {
      return std::unexpected(DiskError(std::move(status).error()));
    }
  }
  // Also for a blob that was there: whoever wrote it may have died before this.
  EXPANSE_RETURN_IF_ERROR(base::FsyncDirectory(directory));
  return std::string(kPrefix) + digest;
}

base::Result<bool> DirectoryBlobStore::Refresh(const std::string& path, std::string_view data) {
  base::UniqueFd fd;
  {
    const std::lock_guard lock(entries_);
    fd = base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid() && errno == ENOENT) return false;
    if (!fd.valid()) return base::FailErrno(errno, "open " + path);
    EXPANSE_RETURN_IF_ERROR(Touch(fd.get(), clock_.Now()));
  }
  auto file = base::ReadFd(fd.get(), blobs::kMaxBlobBytes + kHeadRoom);
  if (!file) return std::unexpected(std::move(file).error().With(path));
  auto known = blobs::DecodeBlobFile(*file);
  if (known && *known == data) return true;
  base::LogWarn("blob.repaired", {{"path", path}});
  return false;
}

base::Status DirectoryBlobStore::Write(const std::string& path, const std::string& directory,
                                       std::string_view data) {
  if (::mkdir(directory.c_str(), 0700) == 0) {
    EXPANSE_RETURN_IF_ERROR(base::FsyncDirectory(base::JoinPath(path_, "sha256")));
  } else if (errno != EEXIST) {
    return base::FailErrno(errno, "mkdir " + directory);
  }
  static std::atomic<unsigned> counter{0};
  const std::string temporary =
      fmt::format("{}/tmp/{}.{}", path_, ::getpid(), counter.fetch_add(1));
  base::UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return base::FailErrno(errno, "create " + temporary);
  base::Status status = WriteAndSync(fd.get(), blobs::EncodeBlobFile(data), clock_.Now());
  if (status) {
    const std::lock_guard lock(entries_);
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      status = base::FailErrno(errno, "rename " + temporary);
  }
  if (!status) (void)base::RemoveFile(temporary);
  return status;
}

base::Result<std::string> DirectoryBlobStore::Get(std::string_view name) {
  const std::string_view digest = DigestOf(name);
  if (digest.empty()) return NotFound();
  const std::string path = PathOf(digest);
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() && errno == ENOENT) return NotFound();
  if (!fd.valid()) return base::FailErrno(errno, "open " + path);
  auto file = base::ReadFd(fd.get(), blobs::kMaxBlobBytes + kHeadRoom);
  if (!file) return std::unexpected(std::move(file).error().With(path));
  EXPANSE_ASSIGN_OR_RETURN(std::string data, blobs::DecodeBlobFile(*file));
  if (base::Sha256Hex(data) != digest) {
    return base::Fail(base::Code::kDataLoss, "blob.corrupt",
                      "the blob's bytes no longer match its name");
  }
  return data;
}

base::Result<std::size_t> DirectoryBlobStore::Sweep(
    base::WallTime before, const std::function<bool(std::string_view)>& referenced) {
  const std::string root = base::JoinPath(path_, "sha256");
  std::size_t removed = 0;
  EXPANSE_ASSIGN_OR_RETURN(const auto fans, base::ListDirectory(root));
  for (const std::string& fan : fans) {
    if (fan.size() != kFanoutDigits || !IsHex(fan)) continue;
    EXPANSE_ASSIGN_OR_RETURN(const auto files, base::ListDirectory(base::JoinPath(root, fan)));
    for (const std::string& file : files) {
      const std::string path = fmt::format("{}/{}/{}", root, fan, file);
      struct stat info{};
      // Age first: it is cheaper than asking for references.
      if (::lstat(path.c_str(), &info) != 0 || ModifiedAt(info) >= before) continue;
      if (file.size() != kDigestDigits - kFanoutDigits || !IsHex(file)) continue;
      if (referenced(fmt::format("{}{}{}", kPrefix, fan, file))) continue;
      EXPANSE_ASSIGN_OR_RETURN(const bool gone, RemoveIfOld(path, before));
      removed += gone ? 1 : 0;
    }
  }
  return removed;
}

// Looks at the age once more: a Put may have come since.
base::Result<bool> DirectoryBlobStore::RemoveIfOld(const std::string& path, base::WallTime before) {
  const std::lock_guard lock(entries_);
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || ModifiedAt(info) >= before) return false;
  EXPANSE_RETURN_IF_ERROR(base::RemoveFile(path));
  return true;
}

}  // namespace expanse::store
