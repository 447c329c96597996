#include "daemon/cluster_reporter.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "evidence/wire.h"

namespace expanse::daemon {
namespace {

using namespace std::chrono_literals;

// A data plane that does not know the method may be upgraded one day.
constexpr auto kAskAgainAfter = 10min;
// Beats come about as often as reports are wanted; without it every second one would be too early.
constexpr auto kSlack = 1s;

base::Duration IntervalOf(const data::v1::ReportClusterStateResponse& response) {
  const auto asked = std::chrono::seconds(response.interval().seconds());
  return std::clamp<base::Duration>(asked, 1s, 10min) - kSlack;
}

}  // namespace

void ClusterReporter::Post(evidence::ClusterState state) {
  std::scoped_lock lock(mutex_);
  newest_ = std::move(state);
  posted_ = true;
}

void ClusterReporter::Note(const base::Status& status) {
  std::scoped_lock lock(mutex_);
  if (status) {
    if (!error_.message.empty()) base::LogInfo("cluster_state.back");
    error_ = {};
    return;
  }
  if (error_.reason != status.error().reason) {
    base::LogWarn("cluster_state.failed",
                  {{"reason", status.error().reason}, {"message", status.error().message}});
  }
  error_ = status.error();
  if (error_.message.empty()) error_.message = base::CodeName(error_.code);
  if (error_.code == base::Code::kUnimplemented) next_ = clock_.Mono() + kAskAgainAfter;
}

void ClusterReporter::Report() {
  std::optional<evidence::ClusterState> state;
  {
    std::scoped_lock lock(mutex_);
    if (!newest_ || clock_.Mono() < next_) return;
    state = std::exchange(newest_, std::nullopt);
  }
  data::v1::ReportClusterStateRequest request;
  evidence::ToProto(*state, request.mutable_state());
  auto response = session_.ReportClusterState(request, timeout_);
  if (response) {
    Note({});
    std::scoped_lock lock(mutex_);
    reported_ = state->observed_at;
    bytes_ = request.ByteSizeLong();
    next_ = clock_.Mono() + IntervalOf(*response);
    return;
  }
  // What was refused for what it is would be refused again.
  const bool hopeless = response.error().code == base::Code::kInvalidArgument;
  Note(std::unexpected(std::move(response.error())));
  std::scoped_lock lock(mutex_);
  if (!hopeless && !newest_) newest_ = std::move(state);
}

std::optional<evidence::HealthRow> ClusterReporter::health(base::WallTime now) const {
  std::scoped_lock lock(mutex_);
  if (!posted_) return std::nullopt;
  evidence::HealthRow row{.collector = "cluster_state",
                          .status = evidence::HealthStatus::kOk,
                          .reason = "",
                          .message = "",
                          .checked_at = now,
                          .figures = {}};
  if (!error_.message.empty()) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = error_.reason;
    row.message = error_.message;
  }
  if (reported_) {
    row.figures["age_s"] = base::ToSeconds(now - *reported_);
    row.figures["bytes"] = static_cast<double>(bytes_);
  }
  return row;
}

}  // namespace expanse::daemon
