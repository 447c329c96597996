#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "evidence/wire.h"
#include "evidence/wire_fields.h"
#include "expanse/data/v1/evidence.pb.h"

namespace expanse::evidence {
namespace {

namespace pb = data::v1;
using wire::Malformed;
using wire::TooLarge;

// ---- to protobuf

void PutKey(const ExecutionKey& key, pb::ExecutionKey* out) {
  out->set_source_type(static_cast<common::v1::SourceType>(key.source_type));
  out->set_identity(base::ToValidUtf8(key.identity));
}

void Put(const ExecutionObservation& in, pb::EvidenceRecord* out) {
  PutKey(in.key, out->mutable_execution()->mutable_key());
  ToProto(in.execution, out->mutable_execution()->mutable_execution());
}

void Put(const SampleBatch& in, pb::EvidenceRecord* out) {
  pb::SampleBatch* batch = out->mutable_samples();
  if (in.key) PutKey(*in.key, batch->mutable_key());
  for (const base::WallTime time : in.times) batch->add_times(base::ToMicros(time));
  for (const SeriesColumn& column : in.columns) {
    pb::SeriesColumn* to = batch->add_columns();
    to->set_metric(base::ToValidUtf8(column.metric));
    to->set_source(base::ToValidUtf8(column.source));
    to->set_node(base::ToValidUtf8(column.node));
    if (column.gpu_index) to->set_gpu_index(*column.gpu_index);
    to->set_gpu_uuid(base::ToValidUtf8(column.gpu_uuid));
    to->set_attribution(base::ToValidUtf8(column.attribution));
    to->set_unit(base::ToValidUtf8(column.unit));
    for (const double value : column.values) {
      to->add_values(std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN());
    }
  }
}

void Put(const LogTail& in, pb::EvidenceRecord* out) {
  pb::LogTail* tail = out->mutable_log_tail();
  PutKey(in.key, tail->mutable_key());
  tail->set_stream(base::ToValidUtf8(in.stream));
  tail->set_data(in.data);
  tail->set_offset(in.offset);
  tail->set_total_bytes(in.total_bytes);
  tail->set_first_error(in.first_error);
  tail->set_first_error_offset(in.first_error_offset);
  tail->set_redactions(in.redactions);
}

template <typename File>
void PutPath(const std::string& path, File* out) {
  out->set_path(base::ToValidUtf8(path));
  if (!base::IsValidUtf8(path)) out->set_raw_path(path);
}

void Put(const SourceBundle& in, pb::EvidenceRecord* out) {
  pb::SourceBundle* bundle = out->mutable_source_bundle();
  PutKey(in.key, bundle->mutable_key());
  for (const SourceFile& file : in.files) {
    pb::SourceFile* to = bundle->add_files();
    PutPath(file.path, to);
    to->set_role(base::ToValidUtf8(file.role));
    to->set_data(file.data);
    to->set_content_hash(base::ToValidUtf8(file.content_hash));
    to->set_redactions(file.redactions);
  }
  for (const SkippedFile& file : in.skipped) {
    pb::SkippedFile* to = bundle->add_skipped();
    PutPath(file.path, to);
    to->set_reason(base::ToValidUtf8(file.reason));
  }
}

// ---- from protobuf

base::Result<ExecutionKey> TakeKey(bool has, const pb::ExecutionKey& in, const WireLimits& limits) {
  if (!has) return Malformed("the record names no execution");
  if (!common::v1::SourceType_IsValid(in.source_type()) ||
      in.source_type() == common::v1::SOURCE_TYPE_UNSPECIFIED) {
    return Malformed("the execution's source type is unknown");
  }
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.identity(), "the execution's identity", limits, /*may_be_empty=*/false));
  return ExecutionKey{.source_type = static_cast<SourceType>(in.source_type()),
                      .identity = in.identity()};
}

base::Result<Payload> Take(const pb::ExecutionObservation& in, base::WallTime now,
                           const WireLimits& limits) {
  ExecutionObservation out;
  EXPANSE_ASSIGN_OR_RETURN(out.key, TakeKey(in.has_key(), in.key(), limits));
  EXPANSE_ASSIGN_OR_RETURN(out.execution, FromProto(in.execution(), now, limits));
  return out;
}

base::Result<SeriesColumn> TakeColumn(const pb::SeriesColumn& in, int times,
                                      const WireLimits& limits) {
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.metric(), "a metric's name", limits, /*may_be_empty=*/false));
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.source(), "a series' source", limits, /*may_be_empty=*/false));
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.node(), "a series' node", limits, /*may_be_empty=*/true));
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.gpu_uuid(), "a GPU's UUID", limits, /*may_be_empty=*/true));
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.attribution(), "an attribution", limits, /*may_be_empty=*/true));
  EXPANSE_RETURN_IF_ERROR(wire::CheckName(in.unit(), "a unit", limits, /*may_be_empty=*/true));
  if (in.values_size() != times) {
    return Malformed(
        fmt::format("series {} has {} values for {} times", in.metric(), in.values_size(), times));
  }
  SeriesColumn out{.metric = in.metric(),
                   .source = in.source(),
                   .node = in.node(),
                   .gpu_index = std::nullopt,
                   .gpu_uuid = in.gpu_uuid(),
                   .attribution = in.attribution(),
                   .unit = in.unit(),
                   .values = {in.values().begin(), in.values().end()}};
  if (in.has_gpu_index()) out.gpu_index = in.gpu_index();
  std::replace_if(
      out.values.begin(), out.values.end(), [](double v) { return !std::isfinite(v); },
      std::numeric_limits<double>::quiet_NaN());
  return out;
}

base::Result<Payload> Take(const pb::SampleBatch& in, base::WallTime now,
                           const WireLimits& limits) {
  const auto times = static_cast<std::size_t>(in.times_size());
  const auto columns = static_cast<std::size_t>(in.columns_size());
  if (columns > limits.columns || times > limits.points || times * columns > limits.points) {
    return TooLarge(fmt::format("{} series of {} times, at most {} series and {} points are taken",
                                columns, times, limits.columns, limits.points));
  }
  SampleBatch out;
  if (in.has_key()) {
    EXPANSE_ASSIGN_OR_RETURN(out.key, TakeKey(/*has=*/true, in.key(), limits));
  }
  out.times.reserve(times);
  for (const std::int64_t micros : in.times()) {
    // FormatRfc3339 in the error needs a year of four digits.
    if (micros < 0 || micros > 253'402'300'799'000'000)
      return Malformed("a sample's time is not a time");
    out.times.push_back(base::FromMicros(micros));
    EXPANSE_RETURN_IF_ERROR(wire::CheckTime(out.times.back(), now, "a sample's time"));
  }
  out.columns.reserve(columns);
  for (const pb::SeriesColumn& column : in.columns()) {
    EXPANSE_ASSIGN_OR_RETURN(SeriesColumn taken, TakeColumn(column, in.times_size(), limits));
    out.columns.push_back(std::move(taken));
  }
  return out;
}

base::Result<Payload> Take(const pb::LogTail& in, base::WallTime, const WireLimits& limits) {
  LogTail out;
  EXPANSE_ASSIGN_OR_RETURN(out.key, TakeKey(in.has_key(), in.key(), limits));
  if (in.stream() != "stdout" && in.stream() != "stderr" && in.stream() != "combined") {
    return Malformed("a log tail is of stdout, stderr or combined");
  }
  if (in.data().size() > limits.log_bytes || in.first_error().size() > limits.log_bytes) {
    return TooLarge(fmt::format("a log tail of {} and {} bytes, at most {} are taken",
                                in.data().size(), in.first_error().size(), limits.log_bytes));
  }
  // Not offset + size: redaction changes the length of what is sent.
  if (!wire::FitsSigned(in.total_bytes()) || in.offset() > in.total_bytes() ||
      in.first_error_offset() > in.total_bytes()) {
    return Malformed("a log tail's offsets lie outside its stream");
  }
  out.stream = in.stream();
  out.data = in.data();
  out.offset = in.offset();
  out.total_bytes = in.total_bytes();
  out.first_error = in.first_error();
  out.first_error_offset = in.first_error_offset();
  out.redactions = in.redactions();
  return out;
}

template <typename File>
base::Result<std::string> TakePath(const File& file, const WireLimits& limits) {
  EXPANSE_ASSIGN_OR_RETURN(
      std::string path,
      wire::TakeRaw(file.path(), file.raw_path().empty() ? nullptr : &file.raw_path(), "path"));
  if (path.size() > limits.text) return TooLarge(fmt::format("a path has {} bytes", path.size()));
  if (path.empty() || path.find('\0') != std::string::npos)
    return Malformed("a path is empty or has a NUL");
  return path;
}

base::Result<SourceFile> TakeFile(const pb::SourceFile& in, const WireLimits& limits) {
  SourceFile out;
  EXPANSE_ASSIGN_OR_RETURN(out.path, TakePath(in, limits));
  EXPANSE_RETURN_IF_ERROR(
      wire::CheckName(in.role(), "a source file's role", limits, /*may_be_empty=*/false));
  const bool hex = std::all_of(in.content_hash().begin(), in.content_hash().end(),
                               [](char c) { return base::IsDigit(c) || (c >= 'a' && c <= 'f'); });
  if (in.content_hash().size() != 64 || !hex)
    return Malformed("a source file's content hash is not SHA-256 in hex");
  out.role = in.role();
  out.data = in.data();
  out.content_hash = in.content_hash();
  out.redactions = in.redactions();
  return out;
}

base::Result<Payload> Take(const pb::SourceBundle& in, base::WallTime, const WireLimits& limits) {
  SourceBundle out;
  EXPANSE_ASSIGN_OR_RETURN(out.key, TakeKey(in.has_key(), in.key(), limits));
  if (static_cast<std::size_t>(std::max(in.files_size(), in.skipped_size())) >
      limits.bundle_files) {
    return TooLarge(
        fmt::format("a bundle of {} files and {} skipped ones, at most {} each are taken",
                    in.files_size(), in.skipped_size(), limits.bundle_files));
  }
  std::size_t bytes = 0;
  for (const pb::SourceFile& file : in.files()) {
    bytes += file.data().size();
    if (bytes > limits.bundle_bytes)
      return TooLarge(fmt::format("a bundle above {} bytes", limits.bundle_bytes));
    EXPANSE_ASSIGN_OR_RETURN(SourceFile taken, TakeFile(file, limits));
    out.files.push_back(std::move(taken));
  }
  for (const pb::SkippedFile& file : in.skipped()) {
    EXPANSE_ASSIGN_OR_RETURN(std::string path, TakePath(file, limits));
    EXPANSE_RETURN_IF_ERROR(
        wire::CheckName(file.reason(), "a skipped file's reason", limits, /*may_be_empty=*/true));
    out.skipped.push_back({std::move(path), file.reason()});
  }
  return out;
}

base::Result<Payload> TakePayload(const pb::EvidenceRecord& in, base::WallTime now,
                                  const WireLimits& limits) {
  switch (in.payload_case()) {
    case pb::EvidenceRecord::kExecution:
      return Take(in.execution(), now, limits);
    case pb::EvidenceRecord::kSamples:
      return Take(in.samples(), now, limits);
    case pb::EvidenceRecord::kLogTail:
      return Take(in.log_tail(), now, limits);
    case pb::EvidenceRecord::kSourceBundle:
      return Take(in.source_bundle(), now, limits);
    case pb::EvidenceRecord::PAYLOAD_NOT_SET:
      break;
  }
  return Malformed("the record has no payload that this version knows");
}

}  // namespace

void ToProto(const Record& record, pb::EvidenceRecord* out) {
  out->Clear();
  out->set_sequence(record.sequence);
  wire::PutTime(record.observed_at, out->mutable_observed_at());
  std::visit([out](const auto& payload) { Put(payload, out); }, record.payload);
}

base::Result<Record> FromProto(const pb::EvidenceRecord& in, base::WallTime now,
                               const WireLimits& limits) {
  Record out;
  if (in.sequence() == 0 || !wire::FitsSigned(in.sequence()))
    return Malformed("a record's sequence is from 1 to 2^63-1");
  if (!in.has_observed_at()) return Malformed("a record has no observed_at");
  out.sequence = in.sequence();
  EXPANSE_ASSIGN_OR_RETURN(out.observed_at, wire::TakeTime(in.observed_at(), now, "observed_at"));
  EXPANSE_ASSIGN_OR_RETURN(out.payload, TakePayload(in, now, limits));
  return out;
}

std::string Encode(const Record& record) {
  pb::EvidenceRecord message;
  if (const auto* seen = std::get_if<ExecutionObservation>(&record.payload)) {
    ToProto({record.sequence, record.observed_at,
             ExecutionObservation{seen->key, FitLimits(seen->execution)}},
            &message);
  } else {
    ToProto(record, &message);
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps have no order of their own
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

base::Result<Record> Decode(std::string_view bytes, base::WallTime now, const WireLimits& limits) {
  constexpr std::size_t kMost = 64U << 20;
  if (bytes.size() > kMost) return TooLarge(fmt::format("a record of {} bytes", bytes.size()));
  pb::EvidenceRecord message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Malformed("the bytes are not an evidence record");
  }
  return FromProto(message, now, limits);
}

}  // namespace expanse::evidence
