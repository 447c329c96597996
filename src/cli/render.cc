#include "cli/render.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>
#include <google/protobuf/util/json_util.h>

#include <ctime>

#include "base/text.h"

namespace expanse::cli {
namespace {

// EXECUTION_STATUS_OUT_OF_MEMORY -> "out_of_memory", behind the enum's own prefix.
template <typename E>
std::string EnumLabel(E value, std::string_view prefix) {
  const auto* descriptor = google::protobuf::GetEnumDescriptor<E>()->FindValueByNumber(value);
  if (descriptor == nullptr) return std::to_string(static_cast<int>(value));
  if (descriptor->number() == 0) return {};
  return base::ToLower(std::string_view(descriptor->name()).substr(prefix.size()));
}

template <typename E>
std::optional<E> EnumFromLabel(std::string_view label, std::string_view prefix) {
  const auto* type = google::protobuf::GetEnumDescriptor<E>();
  for (int i = 1; i < type->value_count(); ++i) {
    const auto value = static_cast<E>(type->value(i)->number());
    if (EnumLabel(value, prefix) == label) return value;
  }
  return std::nullopt;
}

constexpr std::string_view kSource = "SOURCE_TYPE_";
constexpr std::string_view kState = "COMPUTE_STATE_";
constexpr std::string_view kStatus = "EXECUTION_STATUS_";
constexpr std::string_view kOutcome = "EXECUTION_OUTCOME_";

std::string LocalMinute(base::WallTime time) {
  const std::time_t seconds = base::ToMicros(time) / 1'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min);
}

}  // namespace

base::WallTime FromTimestamp(const google::protobuf::Timestamp& timestamp) {
  return base::FromMicros(timestamp.seconds() * 1'000'000 + timestamp.nanos() / 1000);
}

void ToTimestamp(base::WallTime time, google::protobuf::Timestamp* timestamp) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  timestamp->set_seconds(seconds.time_since_epoch().count());
  timestamp->set_nanos(static_cast<std::int32_t>((time - seconds).count() * 1000));
}

std::string RelativeTime(base::WallTime now, base::WallTime time) {
  const bool past = time <= now;
  const std::int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(past ? now - time : time - now).count();
  if (seconds < 1) return "just now";
  std::string span;
  if (seconds < 60) {
    span = fmt::format("{}s", seconds);
  } else if (seconds < 3600) {
    span = fmt::format("{}m", seconds / 60);
  } else if (seconds < 86'400) {
    span = fmt::format("{}h{:02}m", seconds / 3600, seconds % 3600 / 60);
  } else {
    span = fmt::format("{}d{:02}h", seconds / 86'400, seconds % 86'400 / 3600);
  }
  return past ? span + " ago" : "in " + span;
}

std::string ShowTime(const App& app, bool present, const google::protobuf::Timestamp& timestamp) {
  if (!present) return {};
  const base::WallTime time = FromTimestamp(timestamp);
  if (!app.terminal.OutIsTerminal()) return base::FormatRfc3339(time);
  const base::WallTime now = app.clock.Now();
  if (now - time < std::chrono::hours(24) && time - now < std::chrono::hours(24)) {
    return RelativeTime(now, time);
  }
  return LocalMinute(time);
}

std::string Label(common::v1::SourceType type) { return EnumLabel(type, kSource); }
std::string Label(common::v1::ComputeState state) { return EnumLabel(state, kState); }
std::string Label(data::v1::ExecutionStatus status) { return EnumLabel(status, kStatus); }
std::string Label(data::v1::ExecutionOutcome outcome) { return EnumLabel(outcome, kOutcome); }

std::string Label(data::v1::HealthStatus status) { return EnumLabel(status, "HEALTH_STATUS_"); }
std::optional<common::v1::SourceType> ParseSourceType(std::string_view label) {
  return EnumFromLabel<common::v1::SourceType>(label, kSource);
}
std::optional<data::v1::ExecutionStatus> ParseStatus(std::string_view label) {
  return EnumFromLabel<data::v1::ExecutionStatus>(label, kStatus);
}
std::optional<data::v1::ExecutionOutcome> ParseOutcome(std::string_view label) {
  return EnumFromLabel<data::v1::ExecutionOutcome>(label, kOutcome);
}

Tint TintOf(common::v1::ComputeState state) {
  if (state == common::v1::COMPUTE_STATE_ACTIVE) return Tint::kGood;
  if (state == common::v1::COMPUTE_STATE_OFFLINE || state == common::v1::COMPUTE_STATE_DEGRADED) {
    return Tint::kBad;
  }
  return state == common::v1::COMPUTE_STATE_REVOKED ? Tint::kFaint : Tint::kNone;
}

Tint TintOf(data::v1::ExecutionStatus status) {
  if (status == data::v1::EXECUTION_STATUS_SUCCEEDED) return Tint::kGood;
  if (status == data::v1::EXECUTION_STATUS_FAILED) return Tint::kBad;
  return status == data::v1::EXECUTION_STATUS_RUNNING ? Tint::kBusy : Tint::kNone;
}

TableStyle StyleOf(const App& app) {
  return {.width = app.terminal.Width(), .colour = app.terminal.Colour()};
}

std::string Printable(const App& app, std::string_view text) {
  if (!app.terminal.OutIsTerminal()) return std::string(text);
  std::string safe;
  const auto lines = base::Split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) safe += '\n';
    const auto cells = base::Split(lines[i], '\t');
    for (std::size_t j = 0; j < cells.size(); ++j) {
      if (j > 0) safe += '\t';
      safe += base::EscapeForDisplay(cells[j]);
    }
  }
  return safe;
}

base::Result<std::string> ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  try {
    const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
    if (!status.ok()) {
      return base::Fail(base::Code::kInternal, "cli.json",
                        "writing JSON: " + std::string(status.message()));
    }
  } catch (const std::exception& error) {  // its type resolver throws
    return base::Fail(base::Code::kInternal, "cli.json",
                      fmt::format("writing JSON: {}", error.what()));
  }
  if (!json.ends_with('\n')) json += '\n';
  return json;
}

CommandResult PrintJson(App& app, const google::protobuf::Message& message) {
  EXPANSE_ASSIGN_OR_RETURN(const std::string json, ToJson(message));
  app.terminal.Out(json);
  return 0;
}

}  // namespace expanse::cli
