#include "daemon/become_user.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace expanse::daemon {
namespace {

base::Status KeepCapabilities(bool reads_as_users) {
  std::uint32_t wanted = (1U << CAP_DAC_READ_SEARCH) | (1U << CAP_SYS_PTRACE);
  if (reads_as_users) wanted |= (1U << CAP_SETUID) | (1U << CAP_SETGID);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return base::FailErrno(errno, "capget");
  // What root itself lacks (in a container) cannot be kept.
  const std::uint32_t kept = data[0].permitted & wanted;
  data[0] = {.effective = kept, .permitted = kept, .inheritable = 0};
  data[1] = {};
  if (::syscall(SYS_capset, &header, data.data()) != 0) return base::FailErrno(errno, "capset");
  return {};
}

}  // namespace

base::Status BecomeUser(const std::string& user, bool reads_as_users) {
  std::array<char, 16384> buffer{};
  struct passwd entry{};
  struct passwd* found = nullptr;
  const int error = ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (error != 0) return base::FailErrno(error, "looking up user " + user);
  if (found == nullptr) {
    return base::Fail(base::Code::kNotFound, "user.unknown", "there is no user " + user);
  }
  if (found->pw_uid == ::geteuid()) return {};
  if (::initgroups(user.c_str(), found->pw_gid) != 0) return base::FailErrno(errno, "initgroups");
  if (::prctl(PR_SET_KEEPCAPS, 1) != 0) return base::FailErrno(errno, "prctl");
  if (::setresgid(found->pw_gid, found->pw_gid, found->pw_gid) != 0 ||
      ::setresuid(found->pw_uid, found->pw_uid, found->pw_uid) != 0) {
    return base::FailErrno(errno, "becoming user " + user);
  }
  return KeepCapabilities(reads_as_users);
}

}  // namespace expanse::daemon
