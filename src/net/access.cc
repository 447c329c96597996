#include "net/access.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "base/text.h"
#include "expanse/common/v1/access.pb.h"

namespace expanse::net {
namespace {

using base::Code;

constexpr std::size_t kMaxToken = 8192;

std::optional<CallerKind> KindOf(int declared) {
  switch (declared) {
    case common::v1::CALLER_KIND_ANONYMOUS:
      return CallerKind::kAnonymous;
    case common::v1::CALLER_KIND_USER:
      return CallerKind::kUser;
    case common::v1::CALLER_KIND_COMPUTE:
      return CallerKind::kCompute;
    case common::v1::CALLER_KIND_PLANE:
      return CallerKind::kPlane;
    default:
      return std::nullopt;  // unspecified, or a kind that a newer contract knows
  }
}

}  // namespace

std::optional<AccessRule> DeclaredAccess(const google::protobuf::MethodDescriptor& method) {
  if (!method.options().HasExtension(common::v1::access)) return std::nullopt;
  const common::v1::Access& declared = method.options().GetExtension(common::v1::access);
  AccessRule rule{{}, declared.permission()};
  for (const int caller : declared.callers()) {
    if (const auto kind = KindOf(caller)) rule.callers.push_back(*kind);
  }
  if (rule.callers.empty()) return std::nullopt;
  return rule;
}

std::string_view CallerKindName(CallerKind kind) {
  switch (kind) {
    case CallerKind::kUser:
      return "user";
    case CallerKind::kCompute:
      return "compute";
    case CallerKind::kPlane:
      return "plane";
    case CallerKind::kAnonymous:
      break;
  }
  return "anonymous";
}

bool LetsIn(const AccessRule& rule, CallerKind kind) {
  return std::find(rule.callers.begin(), rule.callers.end(), kind) != rule.callers.end();
}

base::Status CheckAccess(const std::optional<AccessRule>& rule, const Caller& caller) {
  if (!rule || rule->callers.empty()) {
    return base::Fail(Code::kPermissionDenied, "access.undeclared",
                      "the method declares nobody who may call it");
  }
  if (!LetsIn(*rule, caller.kind)) {
    return base::Fail(
        Code::kPermissionDenied, "access.caller",
        fmt::format("the method is not for callers of kind {}", CallerKindName(caller.kind)));
  }
  const auto& held = caller.permissions;
  if (caller.kind == CallerKind::kUser && !rule->permission.empty() &&
      std::find(held.begin(), held.end(), rule->permission) == held.end()) {
    return base::Fail(
        Code::kPermissionDenied, "access.permission",
        fmt::format("this needs the permission {}; ask an Owner of your organisation for it",
                    rule->permission));
  }
  return {};
}

base::Result<std::string_view> BearerToken(std::string_view authorization) {
  if (authorization.empty()) {
    return base::Fail(Code::kUnauthenticated, "token.missing",
                      "the call needs an access token: sign in first");
  }
  const auto space = authorization.find(' ');
  const std::string_view token = space == std::string_view::npos
                                     ? std::string_view{}
                                     : base::Trim(authorization.substr(space + 1));
  if (base::ToLower(authorization.substr(0, space)) != "bearer" || token.empty() ||
      token.size() > kMaxToken || token.find(' ') != std::string_view::npos) {
    return base::Fail(Code::kUnauthenticated, "token.malformed",
                      "the Authorization header is not \"Bearer <access token>\"");
  }
  return token;
}

}  // namespace expanse::net
