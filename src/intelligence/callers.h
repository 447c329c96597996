// Whose runs a call may touch. The router lets in only the callers that a method declares; this is
// where the handlers get organisation and user from, and a second look in case a declaration is
// wrong.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/result.h"
#include "net/caller.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence {

inline base::Status RequireUser(const net::CallContext& context) {
  const net::Caller& caller = context.caller;
  if (caller.kind == net::CallerKind::kUser && !caller.organisation_id.empty() &&
      !caller.subject.empty())
    return {};
  return base::Fail(base::Code::kPermissionDenied, "caller.kind",
                    "only users of an organisation may ask the intelligence plane");
}

inline bool Holds(const net::CallContext& context, std::string_view permission) {
  return std::ranges::find(context.caller.permissions, permission) !=
         context.caller.permissions.end();
}
// Whether recorded executions of the organisation may be looked at, as for the data plane.
inline bool ReadsExecutions(const net::CallContext& context) {
  return Holds(context, "executions.read") || Holds(context, "executions.read_all");
}
inline bool ReadsAllRuns(const net::CallContext& context) {
  return Holds(context, "executions.read_all");
}

// Their own runs; with executions.read_all everybody's of the organisation.
inline store::RunScope ScopeOf(const net::CallContext& context) {
  store::RunScope scope{.organisation_id = context.caller.organisation_id};
  if (!ReadsAllRuns(context)) scope.user_id = context.caller.subject;
  return scope;
}

// Runs that nobody asked for: diagnoses of the organisation's executions.
inline store::RunScope SystemScopeOf(const net::CallContext& context) {
  return {.organisation_id = context.caller.organisation_id,
          .user_id = std::string(store::kSystemUser)};
}

}  // namespace expanse::intelligence
