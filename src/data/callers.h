// Whose data a call may touch. The router lets in only the callers that a method declares; this is
// where the handlers get the organisation from, and a second look in case a declaration is wrong.
#pragma once

#include "base/result.h"
#include "net/caller.h"

namespace expanse::data {

inline base::Status RequireUser(const net::CallContext& context) {
  const net::Caller& caller = context.caller;
  if (caller.kind == net::CallerKind::kUser && !caller.organisation_id.empty()) return {};
  return base::Fail(base::Code::kPermissionDenied, "caller.kind",
                    "only users of an organisation may read evidence");
}

inline base::Status RequireCompute(const net::CallContext& context) {
  const net::Caller& caller = context.caller;
  if (caller.kind == net::CallerKind::kCompute && !caller.subject.empty() &&
      !caller.organisation_id.empty())
    return {};
  return base::Fail(base::Code::kPermissionDenied, "caller.kind",
                    "only computes may send evidence, with their own credential");
}

}  // namespace expanse::data
