// What users may do. Methods name the permission they need in the protobuf contract; a test checks
// that every one named there is listed here. Roles of an organisation are sets of these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "store/records/identity_store.h"

namespace expanse::control {

inline constexpr std::string_view kComputesRead = "computes.read";
inline constexpr std::string_view kComputesManage = "computes.manage";
inline constexpr std::string_view kExecutionsRead = "executions.read";  // of the user's teams
inline constexpr std::string_view kExecutionsReadAll =
    "executions.read_all";  // of the organisation
inline constexpr std::string_view kIntelligenceUse = "intelligence.use";

const std::vector<std::string>& AllPermissions();
// What the role permits: for the Owner role whatever there is, also permissions newer than the
// role.
const std::vector<std::string>& PermissionsOf(const store::Role& role);
// The roles that a new organisation starts with: Owner (first), Admin, Member.
std::vector<store::Role> PresetRoles(std::string_view organisation_id, base::WallTime now);

}  // namespace expanse::control
