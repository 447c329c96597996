#include "collect/files/user_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/text.h"

namespace expanse::collect {
namespace {

// On 64-bit machines the numbers without a suffix take 32-bit ids, which is what we give them.
static_assert(sizeof(long) == 8, "the raw credential calls are those of 64-bit Linux");

constexpr std::size_t kMaxPath = 4096;
constexpr int kMaxLinks = 40;  // as the kernel's own limit

// Reads or sets the calling thread's alone, unlike their namesakes in glibc (except setfs?id).
uid_t SetFsUid(uid_t uid) { return static_cast<uid_t>(::syscall(SYS_setfsuid, uid)); }
gid_t SetFsGid(gid_t gid) { return static_cast<gid_t>(::syscall(SYS_setfsgid, gid)); }
uid_t FsUid() { return SetFsUid(static_cast<uid_t>(-1)); }
gid_t FsGid() { return SetFsGid(static_cast<gid_t>(-1)); }

bool SetGroups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

std::vector<gid_t> Groups() {
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int got = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, got)));
  return groups;
}

bool SameGroups(std::vector<gid_t> a, std::vector<gid_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

struct Capabilities {
  std::uint64_t effective = 0;
  std::uint64_t permitted = 0;
  std::uint64_t inheritable = 0;
};

bool GetCapabilities(Capabilities* out) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return false;
  const auto join = [](std::uint32_t low, std::uint32_t high) {
    return std::uint64_t{low} | (std::uint64_t{high} << 32);
  };
  *out = {join(data[0].effective, data[1].effective), join(data[0].permitted, data[1].permitted),
          join(data[0].inheritable, data[1].inheritable)};
  return true;
}

bool SetCapabilities(const Capabilities& caps) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto part = [i](std::uint64_t mask) {
      return static_cast<std::uint32_t>(mask >> 32 * i);
    };
    data[i] = {part(caps.effective), part(caps.permitted), part(caps.inheritable)};
  }
  return ::syscall(SYS_capset, &header, data.data()) == 0;
}

// File systems of the kernel: what is in them is about processes and devices, ours included.
bool IsKernelFileSystem(int fd) {
  struct statfs info{};
  if (::fstatfs(fd, &info) != 0) return true;
  static constexpr std::uint64_t kKernel[] = {
      PROC_SUPER_MAGIC, SYSFS_MAGIC,      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
      TRACEFS_MAGIC,    SECURITYFS_MAGIC, BPF_FS_MAGIC,       EFIVARFS_MAGIC,      NSFS_MAGIC,
      SELINUX_MAGIC,    SMACK_MAGIC,      DEVPTS_SUPER_MAGIC, PSTOREFS_MAGIC,      BINFMTFS_MAGIC};
  const auto type = static_cast<std::uint64_t>(static_cast<std::uint32_t>(info.f_type));
  return std::find(std::begin(kKernel), std::end(kKernel), type) != std::end(kKernel);
}

std::unexpected<base::Error> OpenFailed(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
      return base::Fail(base::Code::kNotFound, "files.not_found", path + ": not found");
    case EACCES:
    case EPERM:
      return base::Fail(base::Code::kPermissionDenied, "files.no_permission",
                        path + ": permission denied");
    case ELOOP:
      return base::Fail(base::Code::kPermissionDenied, "files.link", path + ": a link");
    default:
      return base::FailErrno(error, "opening " + path);
  }
}

// Walks a path by descriptors: each step is checked on the object that the next one starts from.
class Walk {
 public:
  Walk(const std::string& path, bool follow_links) : path_(path), follow_links_(follow_links) {}

  base::Result<base::UniqueFd> Open() {
    if (path_.empty() || path_.front() != '/' || path_.find('\0') != std::string::npos)
      return base::Fail(base::Code::kNotFound, "files.not_found", "not an absolute path");
    if (path_.size() >= kMaxPath) return OpenFailed(ENAMETOOLONG, path_.substr(0, 64) + "…");
    rest_ = path_;
    if (!FromRoot()) return OpenFailed(errno, path_);
    while (true) {
      const std::string name = NextName();
      if (name.empty()) return NotRegular();  // the path ends in a directory
      if (name == ".") continue;
      if (rest_.empty() && name != "..") {
        bool link = false;
        auto file = OpenLast(name, &link);
        if (!link) return file;
      } else {
        auto stepped = Enter(name);
        if (!stepped) return std::unexpected(std::move(stepped).error());
      }
    }
  }

 private:
  bool FromRoot() {
    at_ = base::UniqueFd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    return at_.valid();
  }

  std::string NextName() {
    const std::size_t begin = std::min(rest_.find_first_not_of('/'), rest_.size());
    const std::size_t end = std::min(rest_.find('/', begin), rest_.size());
    std::string name = rest_.substr(begin, end - begin);
    rest_.erase(0, end);
    return name;
  }

  // Into the directory `name`, or along the link. O_DIRECTORY makes automounters mount what O_PATH
  // alone would not.
  base::Status Enter(const std::string& name) {
    base::UniqueFd next(
        ::openat(at_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (next.valid()) {
      at_ = std::move(next);
      return {};
    }
    if (errno != ENOTDIR && errno != ELOOP) return OpenFailed(errno, path_);
    base::UniqueFd other(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info{};
    if (!other.valid() || ::fstat(other.get(), &info) != 0) return OpenFailed(errno, path_);
    if (!S_ISLNK(info.st_mode)) return OpenFailed(ENOTDIR, path_);
    return Follow(other.get(), info.st_uid);
  }

  base::Status Follow(int link, uid_t owner) {
    if (!follow_links_ || ++links_ > kMaxLinks || IsKernelFileSystem(link) || IsPlanted(owner))
      return OpenFailed(ELOOP, path_);
    std::array<char, kMaxPath> target{};
    const ssize_t size = ::readlinkat(link, "", target.data(), target.size());
    if (size < 0) return OpenFailed(errno, path_);
    const std::string_view to(target.data(), static_cast<std::size_t>(size));
    if (to.empty() || to.size() + rest_.size() >= kMaxPath) return OpenFailed(ENAMETOOLONG, path_);
    rest_.insert(0, to);
    if (to.front() == '/' && !FromRoot()) return OpenFailed(errno, path_);
    return {};
  }

  // As fs.protected_symlinks (proc(5)) has it, which looks only at whom the kernel follows for: in
  // a directory such as /tmp only the user's own links and those of the directory's owner.
  bool IsPlanted(uid_t owner) const {
    struct stat directory{};
    if (::fstat(at_.get(), &directory) != 0) return true;
    const bool shared = (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
    return shared && owner != FsUid() && owner != directory.st_uid;
  }

  base::Result<base::UniqueFd> OpenLast(const std::string& name, bool* link) {
    base::UniqueFd looked(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat before{};
    if (!looked.valid() || ::fstat(looked.get(), &before) != 0) return OpenFailed(errno, path_);
    if (S_ISLNK(before.st_mode)) {
      EXPANSE_RETURN_IF_ERROR(Follow(looked.get(), before.st_uid));
      *link = true;
      return base::UniqueFd();
    }
    // Looked at before it is opened: opening a FIFO lets its writer go on, a tape would rewind.
    if (!S_ISREG(before.st_mode)) return NotRegular();
    base::UniqueFd file(::openat(at_.get(), name.c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat info{};
    if (!file.valid() || ::fstat(file.get(), &info) != 0) {
      if (errno == ELOOP || errno == ENOENT) return Replaced();
      return OpenFailed(errno, path_);
    }
    if (info.st_dev != before.st_dev || info.st_ino != before.st_ino || !S_ISREG(info.st_mode))
      return Replaced();
    if (IsKernelFileSystem(file.get())) return NotRegular();
    return file;
  }

  std::unexpected<base::Error> NotRegular() const {
    return base::Fail(base::Code::kFailedPrecondition, "files.not_regular",
                      path_ + ": not a regular file");
  }
  std::unexpected<base::Error> Replaced() const {
    return base::Fail(base::Code::kAborted, "files.replaced",
                      path_ + ": replaced while it was opened");
  }

  const std::string& path_;
  const bool follow_links_;
  std::string rest_;  // of the path, links put in
  base::UniqueFd at_;
  int links_ = 0;
};

}  // namespace

base::Result<UserIdentity> LookUpUser(uid_t uid) {
  constexpr std::size_t kMaxEntry = 1U << 20;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(4096);
  int error = 0;
  while ((error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < kMaxEntry)
    buffer.resize(buffer.size() * 2);
  if (found == nullptr) {
    return base::Fail(error == 0 ? base::Code::kNotFound : base::Code::kUnavailable, "user.unknown",
                      fmt::format("this host knows no user with the id {}", uid));
  }
  UserIdentity user{.uid = uid, .gid = entry.pw_gid, .groups = std::vector<gid_t>(64)};
  int count = static_cast<int>(user.groups.size());
  if (::getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count) < 0) {
    user.groups.resize(static_cast<std::size_t>(std::clamp(count, 1, 65536)));
    count = static_cast<int>(user.groups.size());
    if (::getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count) < 0) count = 0;
  }
  user.groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  return user;
}

base::Result<UserRights> UserRights::Assume(const UserIdentity& user) {
  Capabilities caps;
  if (!GetCapabilities(&caps)) return base::FailErrno(errno, "reading the daemon's capabilities");
  UserRights rights;
  rights.saved_ = {.fsuid = FsUid(),
                   .fsgid = FsGid(),
                   .groups = Groups(),
                   .effective = caps.effective,
                   .permitted = caps.permitted,
                   .inheritable = caps.inheritable};
  rights.active_ = true;  // from here on its destructor undoes what was done
  const bool own = user.uid == rights.saved_.fsuid && user.uid != 0;
  const auto wants_none = static_cast<uid_t>(-1);
  bool done = user.uid != wants_none && user.gid != static_cast<gid_t>(-1);
  if (done) {
    rights.saved_.groups_changed = SetGroups(user.groups);
    // The daemon's own user is no other than itself: where groups cannot be changed they stay.
    done = (rights.saved_.groups_changed && SameGroups(Groups(), user.groups)) || own;
  }
  if (done && rights.saved_.groups_changed) {
    SetFsGid(user.gid);
    done = FsGid() == user.gid;
  }
  if (done) {
    SetFsUid(user.uid);
    done = FsUid() == user.uid;
  }
  if (done) {
    Capabilities none = caps;
    none.effective = 0;
    Capabilities now;
    done = SetCapabilities(none) && GetCapabilities(&now) && now.effective == 0;
  }
  if (done) return rights;
  return base::Fail(base::Code::kPermissionDenied, "user.no_permission",
                    fmt::format("reading files of user {} as that user needs CAP_SETUID and "
                                "CAP_SETGID",
                                user.uid));
}

UserRights::UserRights(UserRights&& other) noexcept
    : active_(std::exchange(other.active_, false)), saved_(std::move(other.saved_)) {}

UserRights::~UserRights() {
  if (active_) Restore(saved_);
}

void UserRights::Restore(const Saved& saved) {
  const Capabilities caps{saved.effective, saved.permitted, saved.inheritable};
  // First the capabilities: they are what allows the rest. Again at the end, because a change of
  // the file-system user from and to root takes and gives some.
  bool done = SetCapabilities(caps);
  SetFsUid(saved.fsuid);
  SetFsGid(saved.fsgid);
  if (saved.groups_changed) done = SetGroups(saved.groups) && done;
  done = SetCapabilities(caps) && done;
  // All of this was ours a moment ago; a thread that is neither itself nor the user must not go on.
  EXPANSE_CHECK(done && FsUid() == saved.fsuid && FsGid() == saved.fsgid);
}

base::Result<base::UniqueFd> OpenRegularFile(const std::string& path, bool follow_links) {
  return Walk(path, follow_links).Open();
}

}  // namespace expanse::collect
