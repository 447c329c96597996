// How values of the API look to people, and the API's JSON to programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cli/app.h"
#include "cli/table.h"
#include "expanse/common/v1/compute.pb.h"
#include "expanse/data/v1/execution.pb.h"
#include "expanse/data/v1/ingest_service.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace google::protobuf {
class Message;
}

namespace expanse::cli {

base::WallTime FromTimestamp(const google::protobuf::Timestamp& timestamp);
void ToTimestamp(base::WallTime time, google::protobuf::Timestamp* timestamp);

// On a terminal "5m ago" within a day, then local "2026-11-30 09:08"; off it RFC 3339. Empty when
// the time is absent.
std::string ShowTime(const App& app, bool present, const google::protobuf::Timestamp& timestamp);
// "5m ago", "in 9m", "just now": the two largest units.
std::string RelativeTime(base::WallTime now, base::WallTime time);

// "slurm", "active", "failed", "out_of_memory"; empty for unspecified. Values newer than this
// program are their number.
std::string Label(common::v1::SourceType type);
std::string Label(common::v1::ComputeState state);
std::string Label(data::v1::ExecutionStatus status);
std::string Label(data::v1::ExecutionOutcome outcome);
std::string Label(data::v1::HealthStatus status);
std::optional<common::v1::SourceType> ParseSourceType(std::string_view label);
std::optional<data::v1::ExecutionStatus> ParseStatus(std::string_view label);
std::optional<data::v1::ExecutionOutcome> ParseOutcome(std::string_view label);

Tint TintOf(common::v1::ComputeState state);
Tint TintOf(data::v1::ExecutionStatus status);

TableStyle StyleOf(const App& app);

// Lines as they are, but on a terminal nothing in them can move the cursor or recolour it.
std::string Printable(const App& app, std::string_view text);

// The message in the API's JSON (field names of the proto files), indented, with a final newline.
base::Result<std::string> ToJson(const google::protobuf::Message& message);
// The same on stdout, as what a command did.
CommandResult PrintJson(App& app, const google::protobuf::Message& message);

}  // namespace expanse::cli
