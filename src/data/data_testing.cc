#include "data/data_testing.h"

#include <utility>

#include "base/crypto.h"
#include "data/memory_stores_testing.h"
#include "evidence/wire.h"
#include "store/blobs/directory_blob_store.h"
#include "store/records/sqlite_evidence_store.h"
#include "store/series/sqlite_series_store.h"
#include "store/sql/fault_testing.h"

namespace expanse::data {
namespace {

template <typename T>
T Must(base::Result<T> result) {
  if (!result) base::Panic(result.error().message, __FILE__, __LINE__);
  return std::move(*result);
}

}  // namespace

std::vector<Backend> AllBackends() { return {Backend::kMemory, Backend::kEmbedded}; }

std::string BackendName(Backend backend) {
  switch (backend) {
    case Backend::kMemory:
      return "Memory";
    case Backend::kEmbedded:
      return "Embedded";
  }
  return "";
}

TestStores MakeStores(Backend backend, base::Clock& clock) {
  TestStores stores;
  switch (backend) {
    case Backend::kMemory:
      stores.records = std::make_unique<MemoryEvidenceStore>(clock);
      stores.series = std::make_unique<MemorySeriesStore>();
      stores.blobs = std::make_unique<MemoryBlobStore>(clock);
      break;
    case Backend::kEmbedded:
      stores.directory = Must(store::StoreDirectory());
      const std::string& path = stores.directory->path();
      stores.records =
          Must(store::SqliteEvidenceStore::Open({.path = path + "/records.db"}, clock));
      stores.series = Must(store::SqliteSeriesStore::Open({.path = path + "/series.db"}));
      stores.blobs = Must(store::DirectoryBlobStore::Open(path + "/blobs", clock));
      break;
  }
  return stores;
}

net::CallContext ComputeCall(std::string_view compute_id, std::string_view organisation_id) {
  net::CallContext context;
  context.caller.kind = net::CallerKind::kCompute;
  context.caller.subject = compute_id;
  context.caller.organisation_id = organisation_id;
  return context;
}

net::CallContext UserCall(std::string_view organisation_id) {
  net::CallContext context;
  context.caller.kind = net::CallerKind::kUser;
  context.caller.subject = "user-1";
  context.caller.organisation_id = organisation_id;
  context.caller.permissions = {"executions.read", "computes.read"};
  return context;
}

evidence::ExecutionKey HostKey(std::string_view identity) {
  return {evidence::SourceType::kHost, std::string(identity)};
}
std::string IdOf(std::string_view identity, std::string_view compute_id) {
  return evidence::ExecutionId(compute_id, HostKey(identity));
}

evidence::Record RunRecord(std::uint64_t sequence, base::WallTime at, std::string_view identity,
                           const std::function<void(evidence::Execution*)>& change) {
  evidence::ExecutionObservation seen{.key = HostKey(identity), .execution = {}};
  seen.execution.native_id = identity;
  seen.execution.status = evidence::ExecutionStatus::kRunning;
  seen.execution.started_at = at;
  if (change) change(&seen.execution);
  return {.sequence = sequence, .observed_at = at, .payload = std::move(seen)};
}

evidence::Record SampleRecord(std::uint64_t sequence, base::WallTime at, std::string_view identity,
                              double value, std::string_view metric) {
  evidence::SampleBatch batch;
  if (!identity.empty()) batch.key = HostKey(identity);
  batch.times = {at};
  batch.columns = {{.metric = std::string(metric),
                    .source = "cgroup",
                    .node = "n1",
                    .gpu_index = std::nullopt,
                    .gpu_uuid = "",
                    .attribution = "",
                    .unit = "cores",
                    .values = {value}}};
  return {.sequence = sequence, .observed_at = at, .payload = std::move(batch)};
}

evidence::Record TailRecord(std::uint64_t sequence, base::WallTime at, std::string_view identity,
                            std::string data) {
  evidence::LogTail tail{.key = HostKey(identity), .stream = "stdout", .data = std::move(data)};
  tail.total_bytes = tail.data.size();
  return {.sequence = sequence, .observed_at = at, .payload = std::move(tail)};
}

evidence::Record BundleRecord(std::uint64_t sequence, base::WallTime at, std::string_view identity,
                              std::string data) {
  evidence::SourceBundle bundle{
      .key = HostKey(identity), .files = {}, .skipped = {{"model.bin", "not text"}}};
  evidence::SourceFile file{.path = "job.sh", .role = "script", .data = std::move(data)};
  file.content_hash = base::Sha256Hex(file.data);
  bundle.files.push_back(std::move(file));
  return {.sequence = sequence, .observed_at = at, .payload = std::move(bundle)};
}

v1::IngestRequest RequestOf(const std::vector<evidence::Record>& records, std::string_view stream) {
  v1::IngestRequest request;
  request.set_stream_id(std::string(stream));
  for (const evidence::Record& record : records) evidence::ToProto(record, request.add_records());
  return request;
}

}  // namespace expanse::data
