// Between the plain records and their protobuf form. Decoding checks what producers send (never
// trusted): sizes, counts, UTF-8, column lengths, time ranges.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "evidence/cluster_state.h"
#include "evidence/execution.h"
#include "evidence/records.h"

namespace expanse::data::v1 {
class ClusterState;
class EvidenceRecord;
class Execution;
class ReportHealthRequest;
}  // namespace expanse::data::v1

namespace expanse::evidence {

// Upper bounds per record; a record beyond them is refused with evidence.too_large.
struct WireLimits {
  std::size_t text = 4096;  // one name, path, comment, label value, capture note
  std::size_t name = 512;   // names of series, scheduler identities, health words
  std::size_t command_items = 4096;
  std::size_t command_bytes = 128U << 10;  // all items together
  std::size_t labels = kMaxLabels;
  std::size_t nodes = 65536;
  std::size_t nodes_bytes = 4U << 20;  // all of them together as they are encoded
  std::size_t notes = 64;
  std::size_t steps = kMaxSteps;
  std::size_t step_text = 1024;            // one text of a step
  std::size_t execution_bytes = 8U << 20;  // the whole message
  std::size_t columns = 4096;
  std::size_t points = 100'000;      // columns x times
  std::size_t log_bytes = 1U << 20;  // the tail; the first error region has the same bound
  std::size_t bundle_files = 256;    // taken, and as many skipped
  std::size_t bundle_bytes = 8U << 20;
  std::size_t health_rows = 256;
  std::size_t health_figures = 64;        // per row
  std::size_t health_bytes = 256U << 10;  // the whole report
  std::size_t cluster_nodes = 65536;
  std::size_t cluster_partitions = 1024;
  std::size_t cluster_words = 256;     // flags, GPU types, reasons, partitions of one node
  std::size_t cluster_text = 256;      // one name, state or reason
  std::size_t cluster_pending = 1000;  // jobs
  std::size_t cluster_bytes = 16U << 20;
};

// Cuts what is beyond the limits (a command line of a thousand file names) and says so in
// capture_notes, so that a long value never costs the record it stands in.
Execution FitLimits(Execution execution, const WireLimits& limits = {});

// Text that is not UTF-8 goes as text with U+FFFD and, byte-exact, in raw_bytes under the name of
// its field ("name", "command[3]", "nodes[0]", "labels[key]", "label_key[key]", "requested.tres",
// "steps[2].name").
void ToProto(const Execution& execution, data::v1::Execution* out);
// Fails with evidence.too_large, evidence.malformed (raw bytes that contradict their text, negative
// or non-finite amounts, amounts above 2^63-1) or evidence.time (before 1990, or over a day ahead
// of `now`; WallTime::max() switches that second check off). A status or outcome of a newer version
// reads as kUnknown.
base::Result<Execution> FromProto(const data::v1::Execution& in, base::WallTime now,
                                  const WireLimits& limits = {});

// Sample values that are not finite are not points: they travel as NaN.
void ToProto(const Record& record, data::v1::EvidenceRecord* out);
base::Result<Record> FromProto(const data::v1::EvidenceRecord& in, base::WallTime now,
                               const WireLimits& limits = {});

// A record as bytes, and back: what the outbox stores. Encode gives equal bytes for equal records
// and puts executions through FitLimits.
std::string Encode(const Record& record);
base::Result<Record> Decode(std::string_view bytes, base::WallTime now,
                            const WireLimits& limits = {});

// Figures that are not finite are left out.
void ToProto(const HealthReport& report, data::v1::ReportHealthRequest* out);
base::Result<HealthReport> FromProto(const data::v1::ReportHealthRequest& in, base::WallTime now,
                                     const WireLimits& limits = {});

// Text that is not UTF-8 goes with U+FFFD: a snapshot is for looking at. What is beyond the limits
// is cut: the last nodes, partitions and pending jobs, then long texts.
void ToProto(const ClusterState& state, data::v1::ClusterState* out, const WireLimits& limits = {});
// Fails with evidence.too_large, evidence.malformed or evidence.time.
base::Result<ClusterState> FromProto(const data::v1::ClusterState& in, base::WallTime now,
                                     const WireLimits& limits = {});

}  // namespace expanse::evidence
