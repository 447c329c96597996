#include "daemon/health_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace expanse::daemon {
namespace {

using nlohmann::json;

std::string_view StatusName(evidence::HealthStatus status) {
  switch (status) {
    case evidence::HealthStatus::kUnspecified:
      return "unknown";
    case evidence::HealthStatus::kOk:
      return "ok";
    case evidence::HealthStatus::kDegraded:
      return "degraded";
    case evidence::HealthStatus::kFailed:
      return "failed";
    case evidence::HealthStatus::kDisabled:
      return "disabled";
  }
  return "unknown";
}

evidence::HealthStatus ParseStatusName(std::string_view name) {
  for (auto status : {evidence::HealthStatus::kOk, evidence::HealthStatus::kDegraded,
                      evidence::HealthStatus::kFailed, evidence::HealthStatus::kDisabled}) {
    if (StatusName(status) == name) return status;
  }
  return evidence::HealthStatus::kUnspecified;
}

std::string TextOf(const json& object, const char* key) {
  const auto found = object.find(key);
  const auto* text = found == object.end() ? nullptr : found->get_ptr<const std::string*>();
  return text == nullptr ? std::string() : *text;
}

std::int64_t NumberOf(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  // The parser keeps non-negative integers as unsigned.
  if (const auto* number = found->get_ptr<const json::number_unsigned_t*>()) {
    return static_cast<std::int64_t>(*number);
  }
  const auto* number = found->get_ptr<const json::number_integer_t*>();
  return number == nullptr ? 0 : *number;
}

std::map<std::string, double> FiguresOf(const json& row) {
  std::map<std::string, double> figures;
  const auto found = row.find("figures");
  if (found == row.end() || !found->is_object()) return figures;
  for (const auto& [name, value] : found->items()) {
    if (value.is_number()) figures[name] = value.get<double>();
  }
  return figures;
}

bool IsFatal(const evidence::HealthRow& row) {
  return row.status == evidence::HealthStatus::kFailed &&
         (row.reason == "stalled" || row.reason == "revoked");
}

}  // namespace

std::string FormatHealth(const HealthSnapshot& snapshot) {
  nlohmann::ordered_json out = {{"version", 1},
                                {"written_at", base::FormatRfc3339(snapshot.written_at)},
                                {"boot_id", snapshot.boot_id},
                                {"mono_ns", snapshot.mono.time_since_epoch().count()},
                                {"pid", snapshot.pid},
                                {"daemon_version", snapshot.daemon_version},
                                {"node", base::ToValidUtf8(snapshot.node)},
                                {"compute_id", snapshot.compute_id},
                                {"control_error", base::ToValidUtf8(snapshot.control_error)},
                                {"data_error", base::ToValidUtf8(snapshot.data_error)},
                                {"rows", nlohmann::ordered_json::array()}};
  for (const evidence::HealthRow& row : snapshot.rows) {
    nlohmann::ordered_json figures = nlohmann::ordered_json::object();
    for (const auto& [name, value] : row.figures) {
      if (std::isfinite(value)) figures[name] = value;
    }
    out["rows"].push_back({{"collector", row.collector},
                           {"status", StatusName(row.status)},
                           {"reason", row.reason},
                           {"message", base::ToValidUtf8(row.message)},
                           {"checked_at", base::FormatRfc3339(row.checked_at)},
                           {"figures", std::move(figures)}});
  }
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

base::Result<HealthSnapshot> ParseHealth(std::string_view text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || NumberOf(parsed, "version") != 1) {
    return base::Fail(base::Code::kInvalidArgument, "health.syntax",
                      "not a health file of version 1");
  }
  EXPANSE_ASSIGN_OR_RETURN(const base::WallTime written_at,
                           base::ParseRfc3339(TextOf(parsed, "written_at")));
  HealthSnapshot snapshot{.boot_id = TextOf(parsed, "boot_id"),
                          .mono = base::MonoTime(base::Duration(NumberOf(parsed, "mono_ns"))),
                          .written_at = written_at,
                          .pid = static_cast<int>(NumberOf(parsed, "pid")),
                          .daemon_version = TextOf(parsed, "daemon_version"),
                          .node = TextOf(parsed, "node"),
                          .compute_id = TextOf(parsed, "compute_id"),
                          .control_error = TextOf(parsed, "control_error"),
                          .data_error = TextOf(parsed, "data_error"),
                          .rows = {}};
  const auto rows = parsed.find("rows");
  if (rows == parsed.end() || !rows->is_array()) return snapshot;
  for (const json& row : *rows) {
    if (!row.is_object()) continue;
    snapshot.rows.push_back(
        {.collector = TextOf(row, "collector"),
         .status = ParseStatusName(TextOf(row, "status")),
         .reason = TextOf(row, "reason"),
         .message = TextOf(row, "message"),
         .checked_at = base::ParseRfc3339(TextOf(row, "checked_at")).value_or(written_at),
         .figures = FiguresOf(row)});
  }
  return snapshot;
}

HealthVerdict JudgeHealth(const HealthSnapshot& snapshot, std::string_view boot_id,
                          base::MonoTime now, std::chrono::milliseconds max_age) {
  if (snapshot.boot_id != boot_id)
    return {false, "unhealthy: the daemon has not run since this machine started"};
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - snapshot.mono);
  if (age > max_age) {
    return {false, fmt::format("unhealthy: the last heartbeat was {:.0f} s ago (limit {})",
                               base::ToSeconds(age), base::FormatDuration(max_age))};
  }
  std::string limits;
  for (const evidence::HealthRow& row : snapshot.rows) {
    if (IsFatal(row)) {
      return {false, base::EscapeForDisplay(fmt::format("unhealthy: {} {}: {}", row.collector,
                                                        row.reason, row.message))};
    }
    if (row.status == evidence::HealthStatus::kDegraded ||
        row.status == evidence::HealthStatus::kFailed) {
      limits += fmt::format("{}{} {}", limits.empty() ? "" : ", ", row.collector, row.reason);
    }
  }
  if (!snapshot.control_error.empty())
    limits += (limits.empty() ? "" : ", ") + std::string("control plane not reached");
  if (!snapshot.data_error.empty())
    limits += (limits.empty() ? "" : ", ") + std::string("data plane not reached");
  return {true,
          base::EscapeForDisplay(limits.empty() ? "healthy" : "healthy, with limits: " + limits)};
}

HealthVerdict CheckHealthFile(const std::string& path, base::Clock& clock,
                              std::chrono::milliseconds max_age) {
  auto text = base::ReadFile(path, 4U << 20);
  if (!text) return {false, base::EscapeForDisplay("unhealthy: " + text.error().message)};
  auto snapshot = ParseHealth(*text);
  if (!snapshot)
    return {false, base::EscapeForDisplay("unhealthy: " + path + ": " + snapshot.error().message)};
  return JudgeHealth(*snapshot, BootId(), clock.Mono(), max_age);
}

std::string BootId() {
  auto text = base::ReadFile("/proc/sys/kernel/random/boot_id", 256);
  return text ? std::string(base::Trim(*text)) : std::string();
}

}  // namespace expanse::daemon
