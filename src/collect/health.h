// How collectors put what they miss into a health row.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "evidence/records.h"

namespace expanse::collect {

// "no_permission", "not_found" or "unreadable".
inline std::string MissingReason(const base::Error& error) {
  if (error.code == base::Code::kPermissionDenied) return "no_permission";
  if (error.code == base::Code::kNotFound) return "not_found";
  return "unreadable";
}

// Degraded by what is in `missing` (what -> reason), which is not empty. Lack of permission is
// named first, because somebody can do something about it.
inline void SetDegraded(evidence::HealthRow& row,
                        const std::map<std::string, std::string>& missing) {
  row.status = evidence::HealthStatus::kDegraded;
  row.reason = missing.begin()->second;
  for (const auto& [what, reason] : missing) {
    if (reason == "no_permission") row.reason = reason;
    row.message += (row.message.empty() ? "" : "; ") + what + ": " + reason;
  }
}

}  // namespace expanse::collect
