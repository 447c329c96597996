#include "daemon/spool/segment_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/text.h"
#include "evidence/wire.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::daemon::spool {
namespace {

constexpr std::string_view kJobPrefix = "job:";
constexpr std::string_view kSluidPrefix = "sluid:s";
constexpr std::size_t kSluidDigits = 13;
constexpr std::size_t kMaxJobIdDigits = 10;  // Slurm's ids have 32 bits

std::unexpected<base::Error> Forged(std::string message) {
  return base::Fail(base::Code::kPermissionDenied, "spool.forged", std::move(message));
}

// Crockford's base 32 leaves out I, L, O and U; Slurm writes it in either case.
bool IsCrockford(char c) {
  const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return base::IsDigit(lower) || (lower >= 'a' && lower <= 'z' && lower != 'i' && lower != 'l' &&
                                  lower != 'o' && lower != 'u');
}

base::Status TakeRecords(const std::vector<std::string>& encoded, bool samples,
                         std::vector<evidence::Record>* out) {
  for (const std::string& bytes : encoded) {
    EXPANSE_ASSIGN_OR_RETURN(evidence::Record record,
                             evidence::Decode(bytes, base::WallTime::max()));
    if (std::holds_alternative<evidence::SampleBatch>(record.payload) != samples)
      return Forged("a record in a block of another kind");
    const evidence::ExecutionKey* key = KeyOf(record.payload);
    if (key != nullptr && !IsLocalKey(*key)) return Forged("a job by more than its local name");
    if (key == nullptr && !samples) return Forged("an event of no job");
    out->push_back(std::move(record));
  }
  return {};
}

base::Result<evidence::HealthReport> TakeStatus(const std::string& bytes, std::string_view host) {
  data::v1::ReportHealthRequest message;
  if (!message.ParseFromString(bytes)) {
    return base::Fail(base::Code::kInvalidArgument, "evidence.malformed",
                      "the status is no health report");
  }
  EXPANSE_ASSIGN_OR_RETURN(evidence::HealthReport report,
                           evidence::FromProto(message, base::WallTime::max()));
  if (report.node != host) return Forged("a status of another host");
  return report;
}

}  // namespace

bool IsLocalKey(const evidence::ExecutionKey& key) {
  if (key.source_type != evidence::SourceType::kSlurm) return false;
  const std::string_view identity = key.identity;
  if (identity.starts_with(kJobPrefix)) {
    const std::string_view digits = identity.substr(kJobPrefix.size());
    return !digits.empty() && digits.size() <= kMaxJobIdDigits && digits[0] != '0' &&
           std::ranges::all_of(digits, base::IsDigit);
  }
  if (!identity.starts_with(kSluidPrefix)) return false;
  const std::string_view digits = identity.substr(kSluidPrefix.size());
  return digits.size() == kSluidDigits && std::ranges::all_of(digits, IsCrockford);
}

const evidence::ExecutionKey* KeyOf(const evidence::Payload& payload) {
  return std::visit(
      [](const auto& record) -> const evidence::ExecutionKey* {
        if constexpr (std::is_same_v<std::decay_t<decltype(record)>, evidence::SampleBatch>) {
          return record.key ? &*record.key : nullptr;
        } else {
          return &record.key;
        }
      },
      payload);
}

evidence::ExecutionKey* KeyOf(evidence::Payload& payload) {
  return const_cast<evidence::ExecutionKey*>(KeyOf(std::as_const(payload)));
}

base::Result<HostEvidence> TakeEvidence(Segment segment, std::string_view host) {
  if (segment.header.host != host) return Forged("it says that it is another host's");
  HostEvidence evidence;
  evidence.records.reserve(segment.events.size() + segment.samples.size());
  EXPANSE_RETURN_IF_ERROR(TakeRecords(segment.events, /*samples=*/false, &evidence.records));
  EXPANSE_RETURN_IF_ERROR(TakeRecords(segment.samples, /*samples=*/true, &evidence.records));
  if (!segment.status.empty()) {
    EXPANSE_ASSIGN_OR_RETURN(evidence.status, TakeStatus(segment.status, host));
  }
  return evidence;
}

std::vector<std::string_view> NodesOf(const evidence::Payload& payload) {
  std::vector<std::string_view> nodes;
  if (const auto* batch = std::get_if<evidence::SampleBatch>(&payload)) {
    for (const evidence::SeriesColumn& column : batch->columns) {
      // Columns of one batch are of one node nearly always.
      if (nodes.empty() || nodes.back() != column.node) nodes.emplace_back(column.node);
    }
  } else if (const auto* seen = std::get_if<evidence::ExecutionObservation>(&payload)) {
    for (const std::string& node : seen->execution.nodes) nodes.emplace_back(node);
  }
  return nodes;
}

void CorrectTimes(std::chrono::microseconds skew, evidence::Record* record) {
  if (skew == std::chrono::microseconds(0)) return;
  record->observed_at -= skew;
  if (auto* batch = std::get_if<evidence::SampleBatch>(&record->payload)) {
    for (base::WallTime& time : batch->times) time -= skew;
  }
}

}  // namespace expanse::daemon::spool
