#include "control/permissions.h"

#include "base/crypto.h"

namespace expanse::control {

const std::vector<std::string>& AllPermissions() {
  static const std::vector<std::string> all = {
      std::string(kComputesRead), std::string(kComputesManage), std::string(kExecutionsRead),
      std::string(kExecutionsReadAll), std::string(kIntelligenceUse)};
  return all;
}

const std::vector<std::string>& PermissionsOf(const store::Role& role) {
  return role.owner ? AllPermissions() : role.permissions;
}

std::vector<store::Role> PresetRoles(std::string_view organisation_id, base::WallTime now) {
  const auto role = [&](std::string name, bool owner, std::vector<std::string> permissions) {
    return store::Role{base::NewUuid(now), std::string(organisation_id), std::move(name), owner,
                       std::move(permissions)};
  };
  return {role("Owner", /*owner=*/true, {}), role("Admin", /*owner=*/false, AllPermissions()),
          role("Member", /*owner=*/false,
               {std::string(kComputesRead), std::string(kExecutionsRead),
                std::string(kIntelligenceUse)})};
}

}  // namespace expanse::control
