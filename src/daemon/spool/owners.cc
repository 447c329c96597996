#include "daemon/spool/owners.h"

#include <fmt/format.h>
#include <pwd.h>

#include "base/text.h"

namespace expanse::daemon::spool {

base::Result<std::vector<uid_t>> ParseOwners(const std::vector<std::string>& users) {
  std::vector<uid_t> owners;
  for (const std::string& user : users) {
    if (const auto number = base::ParseInt<uid_t>(user)) {
      owners.push_back(*number);
      continue;
    }
    std::vector<char> buffer(16U << 10);
    struct passwd entry{};
    struct passwd* found = nullptr;
    if (::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
        found == nullptr) {
      return base::Fail(base::Code::kInvalidArgument, "spool.owner",
                        fmt::format("spool.owners: there is no user \"{}\"", user));
    }
    owners.push_back(found->pw_uid);
  }
  return owners;
}

}  // namespace expanse::daemon::spool
