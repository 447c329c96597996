// Between the plain records and their protobuf form. Decoding checks what producers send (never
// trusted): sizes, counts, UTF-8, column lengths, time ranges.
#pragma once

#include "base/result.h"
#include "evidence/execution.h"
#include "evidence/records.h"

namespace expanse::data::v1 {
class EvidenceRecord;
class Execution;
class ReportHealthRequest;
}  // namespace expanse::data::v1

namespace expanse::evidence {

// Upper bounds per record; a record beyond them is refused with evidence.too_large.
struct WireLimits {
  std::size_t text = 4096;          // one name, path, comment
  std::size_t command_items = 1024;
  std::size_t labels = 128;
  std::size_t nodes = 65536;
  std::size_t columns = 4096;
  std::size_t points = 100'000;     // columns x times
  std::size_t log_bytes = 1U << 20;
  std::size_t bundle_files = 256;
  std::size_t bundle_bytes = 8U << 20;
};

void ToProto(const Execution& execution, data::v1::Execution* out);
// Fails with evidence.too_large, evidence.malformed or evidence.time (before 1990, or over a day
// ahead of `now`).
base::Result<Execution> FromProto(const data::v1::Execution& in, base::WallTime now, const WireLimits& limits = {});

void ToProto(const Record& record, data::v1::EvidenceRecord* out);
base::Result<Record> FromProto(const data::v1::EvidenceRecord& in, base::WallTime now, const WireLimits& limits = {});

// A record as bytes, and back: what the outbox stores.
std::string Encode(const Record& record);
base::Result<Record> Decode(std::string_view bytes, base::WallTime now, const WireLimits& limits = {});

void ToProto(const HealthReport& report, data::v1::ReportHealthRequest* out);
base::Result<HealthReport> FromProto(const data::v1::ReportHealthRequest& in, base::WallTime now);

}  // namespace expanse::evidence
