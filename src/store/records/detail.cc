#include "store/records/detail.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include "base/compress.h"
#include "evidence/wire.h"
#include "expanse/data/v1/cluster.pb.h"
#include "expanse/data/v1/execution.pb.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::store::records {
namespace {

const evidence::WireLimits& NoLimits() {
  constexpr std::size_t kAny = std::numeric_limits<std::int32_t>::max();
  static const evidence::WireLimits limits = {.text = kAny,
                                              .name = kAny,
                                              .command_items = kAny,
                                              .command_bytes = kAny,
                                              .labels = kAny,
                                              .nodes = kAny,
                                              .notes = kAny,
                                              .steps = kAny,
                                              .step_text = kAny,
                                              .execution_bytes = kAny,
                                              .columns = kAny,
                                              .points = kAny,
                                              .log_bytes = kAny,
                                              .bundle_files = kAny,
                                              .bundle_bytes = kAny,
                                              .health_rows = kAny,
                                              .health_figures = kAny,
                                              .health_bytes = kAny,
                                              .cluster_nodes = kAny,
                                              .cluster_partitions = kAny,
                                              .cluster_words = kAny,
                                              .cluster_text = kAny,
                                              .cluster_pending = kAny,
                                              .cluster_bytes = kAny};
  return limits;
}

// Far above what the wire lets in.
constexpr std::size_t kMaxClusterBytes = 256U << 20;

template <typename Message>
std::string Serialize(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps sorted
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

base::Error Damaged(std::string_view why) {
  return {base::Code::kDataLoss, "store.corrupt",
          "a stored record is damaged: " + std::string(why)};
}

}  // namespace

std::string EncodeDetail(const evidence::Execution& execution) {
  data::v1::Execution message;
  evidence::ToProto(execution, &message);
  return Serialize(message);
}

std::string EncodeDetail(const evidence::HealthReport& report) {
  data::v1::ReportHealthRequest message;
  evidence::ToProto(report, &message);
  return Serialize(message);
}

base::Result<evidence::Execution> DecodeExecution(std::string_view detail) {
  data::v1::Execution message;
  if (!message.ParseFromArray(detail.data(), static_cast<int>(detail.size()))) {
    return std::unexpected(Damaged("not a message"));
  }
  auto execution = evidence::FromProto(message, base::WallTime::max(), NoLimits());
  if (!execution) return std::unexpected(Damaged(execution.error().message));
  return execution;
}

std::string EncodeDetail(const evidence::ClusterState& state) {
  data::v1::ClusterState message;
  evidence::ToProto(state, &message, NoLimits());
  return base::ZstdCompress(Serialize(message));
}

base::Result<evidence::ClusterState> DecodeClusterState(std::string_view detail) {
  auto bytes = base::ZstdDecompress(detail, kMaxClusterBytes);
  if (!bytes) return std::unexpected(Damaged(bytes.error().message));
  data::v1::ClusterState message;
  if (!message.ParseFromString(*bytes)) return std::unexpected(Damaged("not a message"));
  auto state = evidence::FromProto(message, base::WallTime::max(), NoLimits());
  if (!state) return std::unexpected(Damaged(state.error().message));
  return state;
}

base::Result<evidence::HealthReport> DecodeHealth(std::string_view detail) {
  data::v1::ReportHealthRequest message;
  if (!message.ParseFromArray(detail.data(), static_cast<int>(detail.size()))) {
    return std::unexpected(Damaged("not a message"));
  }
  auto report = evidence::FromProto(message, base::WallTime::max(), NoLimits());
  if (!report) return std::unexpected(Damaged(report.error().message));
  return report;
}

}  // namespace expanse::store::records
