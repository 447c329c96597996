#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "evidence/wire.h"
#include "evidence/wire_fields.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::evidence {
namespace {

namespace pb = data::v1;

static_assert(static_cast<int>(HealthStatus::kDisabled) ==
              static_cast<int>(pb::HEALTH_STATUS_DISABLED));

base::Result<HealthRow> TakeRow(const pb::HealthRow& in, base::WallTime now,
                                const WireLimits& limits) {
  HealthRow out;
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.collector(), "a collector's name", limits, /*may_be_empty=*/false));
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.reason(), "a health reason", limits, /*may_be_empty=*/true));
  EXPANSE_ASSIGN_OR_RETURN(out.message, wire::TakeRaw(in.message(), nullptr, "a health message"));
  if (in.message().size() > limits.text) return wire::TooLarge("a health message is too long");
  if (in.figures().size() > limits.health_figures) {
    return wire::TooLarge(fmt::format("{} figures in one health row, at most {} are taken",
                                      in.figures().size(), limits.health_figures));
  }
  out.collector = in.collector();
  out.reason = in.reason();
  if (pb::HealthStatus_IsValid(in.status())) out.status = static_cast<HealthStatus>(in.status());
  EXPANSE_ASSIGN_OR_RETURN(out.checked_at, wire::TakeTime(in.checked_at(), now, "checked_at"));
  for (const auto& [name, value] : in.figures()) {
    EXPANSE_RETURN_IF_ERROR(
        wire::CheckName(name, "a figure's name", limits, /*may_be_empty=*/false));
    if (std::isfinite(value)) out.figures.emplace(name, value);
  }
  return out;
}

}  // namespace

void ToProto(const HealthReport& report, pb::ReportHealthRequest* out) {
  out->Clear();
  out->set_daemon_version(base::ToValidUtf8(report.daemon_version));
  out->set_node(base::ToValidUtf8(report.node));
  wire::PutTime(report.started_at, out->mutable_started_at());
  for (const HealthRow& row : report.rows) {
    pb::HealthRow* to = out->add_rows();
    to->set_collector(base::ToValidUtf8(row.collector));
    to->set_status(static_cast<pb::HealthStatus>(row.status));
    to->set_reason(base::ToValidUtf8(row.reason));
    to->set_message(base::ToValidUtf8(row.message));
    wire::PutTime(row.checked_at, to->mutable_checked_at());
    for (const auto& [name, value] : row.figures) {
      if (std::isfinite(value)) (*to->mutable_figures())[base::ToValidUtf8(name)] = value;
    }
  }
}

base::Result<HealthReport> FromProto(const pb::ReportHealthRequest& in, base::WallTime now,
                                     const WireLimits& limits) {
  HealthReport out;
  if (const std::size_t bytes = in.ByteSizeLong(); bytes > limits.health_bytes) {
    return wire::TooLarge(fmt::format("a health report of {} bytes, at most {} are taken", bytes,
                                      limits.health_bytes));
  }
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.daemon_version(), "daemon_version", limits, /*may_be_empty=*/true));
  EXPANSE_RETURN_IF_ERROR(wire::CheckName(in.node(), "node", limits, /*may_be_empty=*/false));
  if (static_cast<std::size_t>(in.rows_size()) > limits.health_rows) {
    return wire::TooLarge(
        fmt::format("{} health rows, at most {} are taken", in.rows_size(), limits.health_rows));
  }
  out.daemon_version = in.daemon_version();
  out.node = in.node();
  EXPANSE_ASSIGN_OR_RETURN(out.started_at, wire::TakeTime(in.started_at(), now, "started_at"));
  for (const pb::HealthRow& row : in.rows()) {
    EXPANSE_ASSIGN_OR_RETURN(HealthRow taken, TakeRow(row, now, limits));
    out.rows.push_back(std::move(taken));
  }
  return out;
}

}  // namespace expanse::evidence
