// The snapshot of a cluster and its protobuf form.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "evidence/wire.h"
#include "evidence/wire_fields.h"
#include "expanse/data/v1/cluster.pb.h"

namespace expanse::evidence {
namespace {

namespace pb = data::v1;
using TextList = google::protobuf::RepeatedPtrField<std::string>;
using CountMap = google::protobuf::Map<std::string, std::uint32_t>;
using GpuList = google::protobuf::RepeatedPtrField<pb::GpuCapacity>;

// ---- to protobuf

class Writer {
 public:
  explicit Writer(const WireLimits& limits) : limits_(limits) {}

  std::string Text(const std::string& text) const {
    std::string safe = base::ToValidUtf8(text);
    wire::CutText(&safe, limits_.cluster_text);
    return safe;
  }
  void PutTexts(const std::vector<std::string>& in, TextList* out) const {
    for (std::size_t i = 0; i < std::min(in.size(), limits_.cluster_words); ++i)
      *out->Add() = Text(in[i]);
  }
  void PutCounts(const std::map<std::string, std::uint32_t>& in, CountMap* out) const {
    for (const auto& [word, count] : in) {
      if (out->size() == limits_.cluster_words) break;
      (*out)[Text(word)] += count;
    }
  }
  void PutGpus(const std::vector<GpuCapacity>& in, GpuList* out) const {
    for (std::size_t i = 0; i < std::min(in.size(), limits_.cluster_words); ++i) {
      pb::GpuCapacity* to = out->Add();
      to->set_type(Text(in[i].type));
      if (in[i].total) to->set_total(*in[i].total);
      if (in[i].allocated) to->set_allocated(*in[i].allocated);
    }
  }
  void Put(const ClusterPartition& in, pb::ClusterPartition* out) const {
    out->set_name(Text(in.name));
    out->set_state(Text(in.state));
    out->set_is_default(in.is_default);
    if (in.max_time_s) out->set_max_time_seconds(*in.max_time_s);
    if (in.default_time_s) out->set_default_time_seconds(*in.default_time_s);
    if (in.nodes_total) out->set_nodes_total(*in.nodes_total);
    PutCounts(in.nodes_by_state, out->mutable_nodes_by_state());
    if (in.cpus_total) out->set_cpus_total(*in.cpus_total);
    if (in.cpus_allocated) out->set_cpus_allocated(*in.cpus_allocated);
    if (in.cpus_idle) out->set_cpus_idle(*in.cpus_idle);
    if (in.cpus_other) out->set_cpus_other(*in.cpus_other);
    if (in.memory_total_bytes) out->set_memory_total_bytes(*in.memory_total_bytes);
    if (in.memory_allocated_bytes) out->set_memory_allocated_bytes(*in.memory_allocated_bytes);
    PutGpus(in.gpus, out->mutable_gpus());
    if (in.pending_jobs) out->set_pending_jobs(*in.pending_jobs);
    if (in.running_jobs) out->set_running_jobs(*in.running_jobs);
  }
  void Put(const ClusterNode& in, pb::ClusterNode* out) const {
    out->set_name(Text(in.name));
    out->set_state(Text(in.state));
    PutTexts(in.flags, out->mutable_flags());
    out->set_reason(Text(in.reason));
    if (in.cpus_total) out->set_cpus_total(*in.cpus_total);
    if (in.cpus_allocated) out->set_cpus_allocated(*in.cpus_allocated);
    if (in.memory_total_bytes) out->set_memory_total_bytes(*in.memory_total_bytes);
    if (in.memory_allocated_bytes) out->set_memory_allocated_bytes(*in.memory_allocated_bytes);
    if (in.memory_free_bytes) out->set_memory_free_bytes(*in.memory_free_bytes);
    PutGpus(in.gpus, out->mutable_gpus());
    PutTexts(in.partitions, out->mutable_partitions());
    PutTexts(in.features, out->mutable_features());
  }
  void Put(const PendingJob& in, pb::PendingJob* out) const {
    if (in.key != ExecutionKey{}) {
      out->mutable_key()->set_source_type(static_cast<common::v1::SourceType>(in.key.source_type));
      out->mutable_key()->set_identity(base::ToValidUtf8(in.key.identity));
    }
    out->set_native_id(Text(in.native_id));
    out->set_name(Text(in.name));
    out->set_user(Text(in.user));
    out->set_account(Text(in.account));
    out->set_partition(Text(in.partition));
    out->set_reason(Text(in.reason));
    if (in.submitted_at) wire::PutTime(*in.submitted_at, out->mutable_submitted_at());
    if (in.eligible_at) wire::PutTime(*in.eligible_at, out->mutable_eligible_at());
    if (in.expected_start_at)
      wire::PutTime(*in.expected_start_at, out->mutable_expected_start_at());
    if (in.priority && std::isfinite(*in.priority)) out->set_priority(*in.priority);
    Resources requested = in.requested;
    requested.gpu_type = Text(requested.gpu_type);
    requested.tres = Text(requested.tres);
    wire::RawMap none;
    if (requested != Resources{})
      wire::PutResources(requested, "requested", out->mutable_requested(), &none);
  }

 private:
  const WireLimits& limits_;
};

// ---- from protobuf

class Reader {
 public:
  Reader(base::WallTime now, const WireLimits& limits) : now_(now), limits_(limits) {}

  base::Result<ClusterState> Read(const pb::ClusterState& in) const {
    EXPANSE_RETURN_IF_ERROR(CheckSizes(in));
    ClusterState out;
    EXPANSE_RETURN_IF_ERROR(Take(in.cluster(), "cluster", &out.cluster));
    EXPANSE_ASSIGN_OR_RETURN(out.observed_at,
                             wire::TakeTime(in.observed_at(), now_, "observed_at"));
    EXPANSE_RETURN_IF_ERROR(TakeTime(in.has_nodes_observed_at(), in.nodes_observed_at(), now_,
                                     "nodes_observed_at", &out.nodes_observed_at));
    EXPANSE_RETURN_IF_ERROR(TakeTime(in.has_partitions_observed_at(), in.partitions_observed_at(),
                                     now_, "partitions_observed_at", &out.partitions_observed_at));
    if (in.has_pending_jobs()) out.pending_jobs = in.pending_jobs();
    if (in.has_running_jobs()) out.running_jobs = in.running_jobs();
    EXPANSE_RETURN_IF_ERROR(
        TakeCounts(in.pending_by_reason(), "pending_by_reason", &out.pending_by_reason));
    EXPANSE_RETURN_IF_ERROR(TakeAll(in.partitions(), &out.partitions));
    EXPANSE_RETURN_IF_ERROR(TakeAll(in.nodes(), &out.nodes));
    EXPANSE_RETURN_IF_ERROR(TakeAll(in.pending(), &out.pending));
    return out;
  }

 private:
  base::Status CheckSizes(const pb::ClusterState& in) const {
    EXPANSE_RETURN_IF_ERROR(
        CheckCount(in.ByteSizeLong(), limits_.cluster_bytes, "bytes in one cluster state"));
    EXPANSE_RETURN_IF_ERROR(CheckCount(static_cast<std::size_t>(in.nodes_size()),
                                       limits_.cluster_nodes, "nodes in one cluster state"));
    EXPANSE_RETURN_IF_ERROR(CheckCount(static_cast<std::size_t>(in.partitions_size()),
                                       limits_.cluster_partitions,
                                       "partitions in one cluster state"));
    return CheckCount(static_cast<std::size_t>(in.pending_size()), limits_.cluster_pending,
                      "pending jobs in one cluster state");
  }
  static base::Status CheckCount(std::size_t count, std::size_t limit, std::string_view what) {
    if (count <= limit) return {};
    return wire::TooLarge(fmt::format("{} {}, at most {} are taken", count, what, limit));
  }

  base::Status Take(const std::string& text, std::string_view what, std::string* out) const {
    return wire::TakeText(text, {}, what, limits_.cluster_text, out);
  }
  static base::Status TakeTime(bool has, const google::protobuf::Timestamp& in, base::WallTime now,
                               std::string_view what, std::optional<base::WallTime>* out) {
    if (!has) return {};
    EXPANSE_ASSIGN_OR_RETURN(*out, wire::TakeTime(in, now, what));
    return {};
  }
  base::Status TakeTexts(const TextList& in, std::string_view what,
                         std::vector<std::string>* out) const {
    EXPANSE_RETURN_IF_ERROR(
        CheckCount(static_cast<std::size_t>(in.size()), limits_.cluster_words, what));
    out->resize(static_cast<std::size_t>(in.size()));
    for (int i = 0; i < in.size(); ++i)
      EXPANSE_RETURN_IF_ERROR(Take(in[i], what, &(*out)[static_cast<std::size_t>(i)]));
    return {};
  }
  base::Status TakeCounts(const CountMap& in, std::string_view what,
                          std::map<std::string, std::uint32_t>* out) const {
    EXPANSE_RETURN_IF_ERROR(CheckCount(in.size(), limits_.cluster_words, what));
    for (const auto& [word, count] : in) {
      std::string key;
      EXPANSE_RETURN_IF_ERROR(Take(word, what, &key));
      out->emplace(std::move(key), count);
    }
    return {};
  }
  base::Status TakeGpus(const GpuList& in, std::vector<GpuCapacity>* out) const {
    EXPANSE_RETURN_IF_ERROR(
        CheckCount(static_cast<std::size_t>(in.size()), limits_.cluster_words, "types of GPUs"));
    for (const pb::GpuCapacity& gpu : in) {
      GpuCapacity& to = out->emplace_back();
      EXPANSE_RETURN_IF_ERROR(Take(gpu.type(), "a GPU's type", &to.type));
      if (gpu.has_total()) to.total = gpu.total();
      if (gpu.has_allocated()) to.allocated = gpu.allocated();
    }
    return {};
  }

  template <typename Message, typename Plain>
  base::Status TakeAll(const google::protobuf::RepeatedPtrField<Message>& in,
                       std::vector<Plain>* out) const {
    out->reserve(static_cast<std::size_t>(in.size()));
    for (const Message& message : in)
      EXPANSE_RETURN_IF_ERROR(TakeOne(message, &out->emplace_back()));
    return {};
  }

  base::Status TakeOne(const pb::ClusterPartition& in, ClusterPartition* out) const {
    EXPANSE_RETURN_IF_ERROR(Take(in.name(), "a partition's name", &out->name));
    EXPANSE_RETURN_IF_ERROR(Take(in.state(), "a partition's state", &out->state));
    out->is_default = in.is_default();
    EXPANSE_RETURN_IF_ERROR(wire::TakeAmount(in.has_max_time_seconds(), in.max_time_seconds(),
                                             "max_time_seconds", &out->max_time_s));
    EXPANSE_RETURN_IF_ERROR(wire::TakeAmount(in.has_default_time_seconds(),
                                             in.default_time_seconds(), "default_time_seconds",
                                             &out->default_time_s));
    if (in.has_nodes_total()) out->nodes_total = in.nodes_total();
    EXPANSE_RETURN_IF_ERROR(
        TakeCounts(in.nodes_by_state(), "nodes_by_state", &out->nodes_by_state));
    EXPANSE_RETURN_IF_ERROR(
        wire::TakeAmount(in.has_cpus_total(), in.cpus_total(), "cpus_total", &out->cpus_total));
    EXPANSE_RETURN_IF_ERROR(wire::TakeAmount(in.has_cpus_allocated(), in.cpus_allocated(),
                                             "cpus_allocated", &out->cpus_allocated));
    EXPANSE_RETURN_IF_ERROR(
        wire::TakeAmount(in.has_cpus_idle(), in.cpus_idle(), "cpus_idle", &out->cpus_idle));
    EXPANSE_RETURN_IF_ERROR(
        wire::TakeAmount(in.has_cpus_other(), in.cpus_other(), "cpus_other", &out->cpus_other));
    EXPANSE_RETURN_IF_ERROR(TakeMemory(in, out));
    EXPANSE_RETURN_IF_ERROR(TakeGpus(in.gpus(), &out->gpus));
    if (in.has_pending_jobs()) out->pending_jobs = in.pending_jobs();
    if (in.has_running_jobs()) out->running_jobs = in.running_jobs();
    return {};
  }

  // Of a partition or a node.
  template <typename Message, typename Plain>
  static base::Status TakeMemory(const Message& in, Plain* out) {
    EXPANSE_RETURN_IF_ERROR(wire::TakeAmount(in.has_memory_total_bytes(), in.memory_total_bytes(),
                                             "memory_total_bytes", &out->memory_total_bytes));
    return wire::TakeAmount(in.has_memory_allocated_bytes(), in.memory_allocated_bytes(),
                            "memory_allocated_bytes", &out->memory_allocated_bytes);
  }

  base::Status TakeOne(const pb::ClusterNode& in, ClusterNode* out) const {
    EXPANSE_RETURN_IF_ERROR(Take(in.name(), "a node's name", &out->name));
    EXPANSE_RETURN_IF_ERROR(Take(in.state(), "a node's state", &out->state));
    EXPANSE_RETURN_IF_ERROR(TakeTexts(in.flags(), "flags of a node", &out->flags));
    EXPANSE_RETURN_IF_ERROR(Take(in.reason(), "a node's reason", &out->reason));
    if (in.has_cpus_total()) out->cpus_total = in.cpus_total();
    if (in.has_cpus_allocated()) out->cpus_allocated = in.cpus_allocated();
    EXPANSE_RETURN_IF_ERROR(TakeMemory(in, out));
    EXPANSE_RETURN_IF_ERROR(wire::TakeAmount(in.has_memory_free_bytes(), in.memory_free_bytes(),
                                             "memory_free_bytes", &out->memory_free_bytes));
    EXPANSE_RETURN_IF_ERROR(TakeGpus(in.gpus(), &out->gpus));
    EXPANSE_RETURN_IF_ERROR(TakeTexts(in.partitions(), "partitions of a node", &out->partitions));
    return TakeTexts(in.features(), "features of a node", &out->features);
  }

  base::Status TakeOne(const pb::PendingJob& in, PendingJob* out) const {
    if (in.has_key()) {
      EXPANSE_RETURN_IF_ERROR(wire::CheckName(in.key().identity(), "a pending job's identity",
                                              limits_, /*may_be_empty=*/false));
      if (!common::v1::SourceType_IsValid(in.key().source_type()))
        return wire::Malformed("a pending job's source_type is not known");
      out->key = {static_cast<SourceType>(in.key().source_type()), in.key().identity()};
    }
    EXPANSE_RETURN_IF_ERROR(Take(in.native_id(), "a pending job's id", &out->native_id));
    EXPANSE_RETURN_IF_ERROR(Take(in.name(), "a pending job's name", &out->name));
    EXPANSE_RETURN_IF_ERROR(Take(in.user(), "a pending job's user", &out->user));
    EXPANSE_RETURN_IF_ERROR(Take(in.account(), "a pending job's account", &out->account));
    EXPANSE_RETURN_IF_ERROR(Take(in.partition(), "a pending job's partition", &out->partition));
    EXPANSE_RETURN_IF_ERROR(Take(in.reason(), "a pending job's reason", &out->reason));
    EXPANSE_RETURN_IF_ERROR(TakeTime(in.has_submitted_at(), in.submitted_at(), now_, "submitted_at",
                                     &out->submitted_at));
    // These may lie any time ahead.
    const auto any = base::WallTime::max();
    EXPANSE_RETURN_IF_ERROR(
        TakeTime(in.has_eligible_at(), in.eligible_at(), any, "eligible_at", &out->eligible_at));
    EXPANSE_RETURN_IF_ERROR(TakeTime(in.has_expected_start_at(), in.expected_start_at(), any,
                                     "expected_start_at", &out->expected_start_at));
    EXPANSE_RETURN_IF_ERROR(
        wire::TakeAmount(in.has_priority(), in.priority(), "priority", &out->priority));
    return wire::TakeResources(in.requested(), {}, "requested", limits_, &out->requested);
  }

  const base::WallTime now_;
  const WireLimits& limits_;
};

}  // namespace

void ToProto(const ClusterState& state, pb::ClusterState* out, const WireLimits& limits) {
  out->Clear();
  const Writer writer(limits);
  out->set_cluster(writer.Text(state.cluster));
  wire::PutTime(state.observed_at, out->mutable_observed_at());
  if (state.nodes_observed_at)
    wire::PutTime(*state.nodes_observed_at, out->mutable_nodes_observed_at());
  if (state.partitions_observed_at)
    wire::PutTime(*state.partitions_observed_at, out->mutable_partitions_observed_at());
  if (state.pending_jobs) out->set_pending_jobs(*state.pending_jobs);
  if (state.running_jobs) out->set_running_jobs(*state.running_jobs);
  writer.PutCounts(state.pending_by_reason, out->mutable_pending_by_reason());
  const auto put = [&](const auto& items, std::size_t limit, auto* to) {
    for (std::size_t i = 0; i < std::min(items.size(), limit); ++i) writer.Put(items[i], to->Add());
  };
  put(state.partitions, limits.cluster_partitions, out->mutable_partitions());
  put(state.pending, limits.cluster_pending, out->mutable_pending());
  put(state.nodes, limits.cluster_nodes, out->mutable_nodes());
  // Nodes with hundreds of long words each: the last ones give way.
  for (std::size_t bytes = out->ByteSizeLong(); bytes > limits.cluster_bytes && out->nodes_size();
       bytes = out->ByteSizeLong()) {
    const int keep = static_cast<int>(static_cast<double>(out->nodes_size()) *
                                      static_cast<double>(limits.cluster_bytes) /
                                      static_cast<double>(bytes) * 0.9);
    out->mutable_nodes()->DeleteSubrange(keep, out->nodes_size() - keep);
  }
}

base::Result<ClusterState> FromProto(const pb::ClusterState& in, base::WallTime now,
                                     const WireLimits& limits) {
  return Reader(now, limits).Read(in);
}

}  // namespace expanse::evidence
