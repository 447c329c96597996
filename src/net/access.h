// The rule that decides who may call a method. Internal to net/: ConnectRouter is the one place
// that asks. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "net/caller.h"
#include "net/connect_server.h"

namespace expanse::net {

// The method's (expanse.common.v1.access) option; nothing when it has none or names no caller.
std::optional<AccessRule> DeclaredAccess(const google::protobuf::MethodDescriptor& method);

std::string_view CallerKindName(CallerKind kind);
bool LetsIn(const AccessRule& rule, CallerKind kind);

// Fails with permission_denied: access.undeclared, access.caller or access.permission.
base::Status CheckAccess(const std::optional<AccessRule>& rule, const Caller& caller);

// The token of "Authorization: Bearer <token>". Fails with unauthenticated, token.missing or
// token.malformed.
base::Result<std::string_view> BearerToken(std::string_view authorization);

}  // namespace expanse::net
