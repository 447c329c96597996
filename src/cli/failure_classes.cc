#include "cli/failure_classes.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/answer_rows.h"
#include "cli/ask.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

constexpr std::size_t kMostIds = 1000;  // the API's
// The list is there without them: nobody waits long.
constexpr std::chrono::milliseconds kPatience{3'000};

bool IsWorthSaying(const base::Error& error) {
  return error.code != base::Code::kUnimplemented && error.code != base::Code::kPermissionDenied;
}

}  // namespace

FailureClasses FindFailureClasses(App& app, Planes& planes,
                                  const std::vector<std::string>& execution_ids) {
  FailureClasses classes;
  if (planes.session().intelligence_plane_url.empty()) return classes;
  for (std::size_t at = 0; at < execution_ids.size(); at += kMostIds) {
    v1::ListFailureClassesRequest request;
    const std::size_t end = std::min(at + kMostIds, execution_ids.size());
    for (std::size_t i = at; i < end; ++i) request.add_execution_ids(execution_ids[i]);
    auto response = planes.Intelligence<v1::ListFailureClassesResponse>(
        "expanse.intelligence.v1.IntelligenceService.ListFailureClasses", request,
        std::min(kPatience, app.timeout));
    if (!response) {
      if (IsWorthSaying(response.error()))
        Warn(app, "failure classes are not known: " + response.error().message);
      return classes;
    }
    for (v1::FailureClass& found : *response->mutable_classes()) {
      std::string id = found.execution_id();
      classes.insert_or_assign(std::move(id), std::move(found));
    }
  }
  return classes;
}

std::string ShowFailureClass(const v1::FailureClass& found) {
  if (found.failure_class().empty()) return {};
  return fmt::format("{} ({}){}{}", found.failure_class(), ShowConfidence(found.confidence()).text,
                     found.title().empty() ? "" : ": ", found.title());
}

}  // namespace expanse::cli
