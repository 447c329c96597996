#include "data/ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/crypto.h"
#include "base/log.h"
#include "base/text.h"
#include "data/callers.h"
#include "data/series_batch.h"
#include "evidence/wire.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::data {
namespace {

using base::Code;

constexpr std::string_view kTooManySeries = "series.too_many";
constexpr std::string_view kForeign = "execution.foreign";
constexpr std::size_t kBytesPerRecord = 8192;  // what a large message counts for

// A store that cannot take the batch now. What exactly was wrong is for our log, not for the
// sender.
std::unexpected<base::Error> StoreFailed(std::string_view what, const base::Error& error) {
  static base::RateLimit limit{std::chrono::seconds(10)};
  if (limit.Allow()) {
    base::LogWarn("data.ingest_store_failed",
                  {{"store", what}, {"reason", error.reason}, {"message", error.message}});
  }
  return base::Fail(
      Code::kUnavailable, "ingest.store",
      fmt::format(
          "the store of {} cannot take evidence now ({}); nothing of this batch was acknowledged, "
          "send it again later",
          what, error.reason));
}

void PutInterval(std::chrono::milliseconds interval, google::protobuf::Duration* out) {
  out->set_seconds(interval.count() / 1000);
  out->set_nanos(static_cast<std::int32_t>(interval.count() % 1000 * 1'000'000));
}

// Removes its entry again.
template <typename Set>
class Turn {
 public:
  Turn(std::mutex& mutex, Set& busy, typename Set::value_type key) : mutex_(mutex), busy_(busy) {
    const std::lock_guard lock(mutex_);
    const auto [at, added] = busy_.insert(std::move(key));
    if (added) mine_ = at;
  }
  ~Turn() {
    const std::lock_guard lock(mutex_);
    if (mine_) busy_.erase(*mine_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool taken() const { return mine_.has_value(); }

 private:
  std::mutex& mutex_;
  Set& busy_;
  std::optional<typename Set::iterator> mine_;
};

}  // namespace

struct Ingest::Batch {
  std::string organisation_id;
  std::string compute_id;
  std::string stream_id;
  std::vector<evidence::Record> records;       // ascending, above the watermark
  std::vector<store::EvidenceChange> changes;  // one per record, also for a refused one
  std::vector<std::pair<std::uint64_t, base::Error>> rejected;
  Load load;
  std::size_t skipped = 0;
  std::uint64_t watermark = 0;

  std::string ExecutionId(const evidence::ExecutionKey& key) const {
    return evidence::ExecutionId(compute_id, key);
  }
  std::string Scope(const evidence::SampleBatch& samples) const {
    return samples.key ? ExecutionId(*samples.key) : "";
  }
  store::EvidenceChange& Change(std::uint64_t sequence, const evidence::ExecutionKey& key) {
    auto change = std::lower_bound(
        changes.begin(), changes.end(), sequence,
        [](const store::EvidenceChange& c, std::uint64_t s) { return c.sequence < s; });
    change->execution_id = ExecutionId(key);
    change->source_type = key.source_type;
    return *change;
  }
};

Ingest::Ingest(const DataOptions& options, store::EvidenceStore& records,
               store::SeriesStore& series, store::BlobStore& blobs, base::Clock& clock,
               base::MetricRegistry& metrics)
    : options_(options),
      records_(records),
      series_(series),
      blobs_(blobs),
      clock_(clock),
      bounds_(options.records_per_second, options.samples_per_second, clock),
      applied_(metrics.GetCounter("expanse_ingest_records_total",
                                  "Evidence records by what became of them.",
                                  {{"result", "applied"}})),
      rejected_(metrics.GetCounter("expanse_ingest_records_total",
                                   "Evidence records by what became of them.",
                                   {{"result", "rejected"}})),
      skipped_(metrics.GetCounter("expanse_ingest_records_total",
                                  "Evidence records by what became of them.",
                                  {{"result", "duplicate"}})),
      samples_(metrics.GetCounter("expanse_ingest_samples_total", "Metric points taken.")),
      store_failures_(metrics.GetCounter("expanse_ingest_store_failures_total",
                                         "Batches that a store could not take.")),
      seconds_(metrics.GetHistogram(
          "expanse_ingest_seconds", "Time to apply one batch.",
          {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10})) {}

base::Status Ingest::CheckRequest(const v1::IngestRequest& request) const {
  if (!base::IsUuid(request.stream_id())) {
    return base::Fail(Code::kInvalidArgument, "ingest.stream",
                      "stream_id is the UUID of an outbox");
  }
  if (static_cast<std::size_t>(request.records_size()) > options_.max_batch_records) {
    return base::Fail(Code::kInvalidArgument, "ingest.batch",
                      fmt::format("{} records in one batch, at most {} are taken",
                                  request.records_size(), options_.max_batch_records));
  }
  if (const std::size_t bytes = request.ByteSizeLong(); bytes > options_.max_batch_bytes) {
    return base::Fail(
        Code::kInvalidArgument, "ingest.batch",
        fmt::format("a batch of {} bytes, at most {} are taken", bytes, options_.max_batch_bytes));
  }
  return {};
}

base::Result<v1::IngestResponse> Ingest::Apply(const net::CallContext& context,
                                               const v1::IngestRequest& request) {
  const base::MonoTime begun = clock_.Mono();
  EXPANSE_RETURN_IF_ERROR(RequireCompute(context));
  EXPANSE_RETURN_IF_ERROR(CheckRequest(request));
  Batch batch;
  batch.organisation_id = context.caller.organisation_id;
  batch.compute_id = context.caller.subject;
  batch.stream_id = request.stream_id();

  const Turn turn(mutex_, busy_, {batch.compute_id, batch.stream_id});
  if (!turn.taken()) {
    return base::Fail(
        Code::kUnavailable, "ingest.in_progress",
        "another batch of this stream is being applied; send this one again in a moment");
  }
  auto watermark = records_.Watermark(batch.compute_id, batch.stream_id);
  if (!watermark) return StoreFailed("records", watermark.error());
  batch.watermark = *watermark;
  TakeRecords(request, *watermark, &batch);
  EXPANSE_RETURN_IF_ERROR(bounds_.Take(batch.compute_id, batch.load));
  if (auto stored = Store(&batch); !stored) {
    bounds_.GiveBack(batch.compute_id, batch.load);
    store_failures_.Add();
    return std::unexpected(std::move(stored).error());
  }

  v1::IngestResponse response;
  response.set_watermark(batch.watermark);
  for (const auto& [sequence, error] : batch.rejected) {
    v1::RejectedRecord* rejected = response.add_rejected();
    rejected->set_sequence(sequence);
    rejected->set_reason(error.reason);
    rejected->set_message(base::ToValidUtf8(error.message));
  }
  applied_.Add(batch.records.size());
  rejected_.Add(batch.rejected.size());
  skipped_.Add(batch.skipped);
  samples_.Add(batch.load.samples);
  seconds_.Observe(base::ToSeconds(clock_.Mono() - begun));
  return response;
}

void Ingest::TakeRecords(const v1::IngestRequest& request, std::uint64_t watermark,
                         Batch* batch) const {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const base::WallTime now = clock_.Now();
  std::vector<std::pair<std::uint64_t, int>> wanted;  // sequence, index in the request
  for (int i = 0; i < request.records_size(); ++i) {
    const v1::EvidenceRecord& record = request.records(i);
    if (record.sequence() == 0 || record.sequence() > kMost) {
      batch->rejected.emplace_back(record.sequence(),
                                   base::Error{Code::kInvalidArgument, "evidence.malformed",
                                               "a record's sequence is from 1 to 2^63-1"});
    } else if (record.sequence() > watermark) {
      wanted.emplace_back(record.sequence(), i);
    } else {
      ++batch->skipped;
    }
  }
  std::sort(wanted.begin(), wanted.end());
  for (const auto& [sequence, index] : wanted) {
    if (!batch->changes.empty() && batch->changes.back().sequence == sequence) {
      ++batch->skipped;  // numbered twice in one batch: the first one counts
      continue;
    }
    batch->changes.push_back({.sequence = sequence});
    ++batch->load.records;
    auto record = evidence::FromProto(request.records(index), now, options_.wire);
    if (!record) {
      batch->rejected.emplace_back(sequence, std::move(record).error());
      continue;
    }
    if (const auto* samples = std::get_if<evidence::SampleBatch>(&record->payload)) {
      batch->load.samples += samples->times.size() * samples->columns.size();
    }
    batch->records.push_back(std::move(*record));
  }
}

base::Status Ingest::Store(Batch* batch) {
  if (batch->changes.empty()) return {};
  EXPANSE_RETURN_IF_ERROR(PutBlobs(batch));
  EXPANSE_RETURN_IF_ERROR(AppendSeries(batch));
  return ApplyRecords(batch);
}

base::Status Ingest::PutBlobs(Batch* batch) {
  // No name for no bytes.
  const auto put = [this](const std::string& data, std::string* name) -> base::Status {
    if (data.empty()) return {};
    auto stored = blobs_.Put(data);
    if (!stored) return StoreFailed("blobs", stored.error());
    *name = std::move(*stored);
    return {};
  };
  for (const evidence::Record& record : batch->records) {
    if (const auto* tail = std::get_if<evidence::LogTail>(&record.payload)) {
      store::LogTailRow row{.stream = tail->stream,
                            .data_blob = "",
                            .offset = tail->offset,
                            .total_bytes = tail->total_bytes,
                            .first_error_blob = "",
                            .first_error_offset = tail->first_error_offset,
                            .redactions = tail->redactions};
      EXPANSE_RETURN_IF_ERROR(put(tail->data, &row.data_blob));
      EXPANSE_RETURN_IF_ERROR(put(tail->first_error, &row.first_error_blob));
      batch->Change(record.sequence, tail->key).log_tail = std::move(row);
    } else if (const auto* bundle = std::get_if<evidence::SourceBundle>(&record.payload)) {
      store::BundleRow row{
          .bundle_hash = evidence::BundleHash(*bundle), .files = {}, .skipped = bundle->skipped};
      for (const evidence::SourceFile& file : bundle->files) {
        store::BundleFileRow& to = row.files.emplace_back();
        to = {.path = file.path,
              .role = file.role,
              .blob = "",
              .content_hash = file.content_hash,
              .size_bytes = file.data.size(),
              .redactions = file.redactions};
        EXPANSE_RETURN_IF_ERROR(put(file.data, &to.blob));
      }
      batch->Change(record.sequence, bundle->key).bundle = std::move(row);
    }
  }
  return {};
}

base::Status Ingest::AppendSeries(Batch* batch) {
  // The series may be ahead of the records, after a crash between the two.
  auto taken = series_.Watermark(batch->compute_id, batch->stream_id);
  if (!taken) return StoreFailed("series", taken.error());
  SeriesBatch gathered(batch->compute_id);
  std::vector<std::string> scopes;
  scopes.reserve(batch->records.size());  // gathered refers to them
  std::uint64_t last = 0;
  for (const evidence::Record& record : batch->records) {
    const auto* samples = std::get_if<evidence::SampleBatch>(&record.payload);
    if (samples == nullptr || record.sequence <= *taken) continue;
    gathered.Add(scopes.emplace_back(batch->Scope(*samples)), *samples);
    last = record.sequence;
  }
  if (last == 0) return {};
  const auto appended =
      series_.Append({batch->compute_id, batch->stream_id, last}, gathered.Appends());
  if (appended) return {};
  if (appended.error().reason == kTooManySeries) return AppendOneByOne(*taken, batch);
  return StoreFailed("series", appended.error());
}

// Finds the records that bring the series too many and takes the others.
base::Status Ingest::AppendOneByOne(std::uint64_t taken, Batch* batch) {
  for (const evidence::Record& record : batch->records) {
    const auto* samples = std::get_if<evidence::SampleBatch>(&record.payload);
    if (samples == nullptr || record.sequence <= taken) continue;
    const std::string scope = batch->Scope(*samples);
    SeriesBatch one(batch->compute_id);
    one.Add(scope, *samples);
    const auto appended =
        series_.Append({batch->compute_id, batch->stream_id, record.sequence}, one.Appends());
    if (appended) continue;
    if (appended.error().reason != kTooManySeries) return StoreFailed("series", appended.error());
    EXPANSE_RETURN_IF_ERROR(AppendKnown(record.sequence, *samples, batch));
  }
  return {};
}

base::Status Ingest::AppendKnown(std::uint64_t sequence, const evidence::SampleBatch& samples,
                                 Batch* batch) {
  const std::string scope = batch->Scope(samples);
  SeriesBatch one(batch->compute_id);
  one.Add(scope, samples);
  auto known = series_.List(batch->compute_id, scope, "");
  if (!known) return StoreFailed("series", known.error());
  std::vector<store::SeriesAppend> appends = one.Appends();
  const std::size_t before = appends.size();
  std::erase_if(appends, [&](const store::SeriesAppend& append) {
    return std::none_of(known->begin(), known->end(),
                        [&](const store::SeriesInfo& info) { return info.key == append.key; });
  });
  batch->rejected.emplace_back(
      sequence,
      base::Error{
          Code::kResourceExhausted, std::string(kTooManySeries),
          fmt::format("{} new series are more than one compute may have in one scope; the {} that "
                      "were known were taken",
                      before - appends.size(), appends.size())});
  if (appends.empty()) return {};
  const auto appended = series_.Append({batch->compute_id, batch->stream_id, sequence}, appends);
  if (!appended) return StoreFailed("series", appended.error());
  return {};
}

base::Status Ingest::ApplyRecords(Batch* batch) {
  for (const evidence::Record& record : batch->records) {
    const auto* seen = std::get_if<evidence::ExecutionObservation>(&record.payload);
    if (seen == nullptr) continue;
    store::EvidenceChange& change = batch->Change(record.sequence, seen->key);
    change.execution = seen->execution;
    // Not the sender's to say.
    change.execution->execution_id = change.execution_id;
    change.execution->compute_id = batch->compute_id;
    change.execution->source_type = seen->key.source_type;
    change.execution->updated_at = record.observed_at;
  }
  auto watermark =
      records_.Apply(batch->organisation_id, batch->compute_id, batch->stream_id, batch->changes);
  if (!watermark && watermark.error().reason == kForeign) return ApplyOneByOne(batch);
  if (!watermark) return StoreFailed("records", watermark.error());
  batch->watermark = *watermark;
  return {};
}

// Finds the records of executions that are not this compute's and takes the others. No later try
// would end otherwise, so the stream must not wait for it.
base::Status Ingest::ApplyOneByOne(Batch* batch) {
  for (store::EvidenceChange& change : batch->changes) {
    const auto apply = [&] {
      return records_.Apply(batch->organisation_id, batch->compute_id, batch->stream_id,
                            {&change, 1});
    };
    auto watermark = apply();
    if (!watermark && watermark.error().reason == kForeign) {
      batch->rejected.emplace_back(change.sequence, std::move(watermark).error());
      change = {.sequence = change.sequence};
      watermark = apply();
    }
    if (!watermark) return StoreFailed("records", watermark.error());
    batch->watermark = *watermark;
  }
  return {};
}

base::Result<v1::ReportHealthResponse> Ingest::ReportHealth(
    const net::CallContext& context, const v1::ReportHealthRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireCompute(context));
  const base::WallTime now = clock_.Now();
  EXPANSE_ASSIGN_OR_RETURN(const evidence::HealthReport report,
                           evidence::FromProto(request, now, options_.wire));
  EXPANSE_RETURN_IF_ERROR(bounds_.Take(context.caller.subject, {.records = 1, .samples = 0}));
  if (auto put =
          records_.PutHealth(context.caller.organisation_id, context.caller.subject, report, now);
      !put) {
    return StoreFailed("records", put.error());
  }
  v1::ReportHealthResponse response;
  PutInterval(options_.health_interval, response.mutable_interval());
  return response;
}

base::Result<v1::ReportClusterStateResponse> Ingest::ReportClusterState(
    const net::CallContext& context, const v1::ReportClusterStateRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireCompute(context));
  const base::WallTime now = clock_.Now();
  EXPANSE_ASSIGN_OR_RETURN(const evidence::ClusterState state,
                           evidence::FromProto(request.state(), now, options_.wire));
  // A snapshot may be as large as thousands of records.
  const std::size_t weight = 1 + request.ByteSizeLong() / kBytesPerRecord;
  EXPANSE_RETURN_IF_ERROR(bounds_.Take(context.caller.subject, {.records = weight, .samples = 0}));
  if (auto put = records_.PutClusterState(context.caller.organisation_id, context.caller.subject,
                                          state, now);
      !put) {
    return StoreFailed("records", put.error());
  }
  v1::ReportClusterStateResponse response;
  PutInterval(options_.health_interval, response.mutable_interval());
  return response;
}

}  // namespace expanse::data
