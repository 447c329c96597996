// The three stores in memory, by the letter of their contracts, and wrappers that fail on purpose.
// For tests and benches; thread-safe, nothing is durable.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "store/blobs/blob_store.h"
#include "store/records/evidence_store.h"
#include "store/series/series_store.h"

namespace expanse::data {

class MemoryEvidenceStore final : public store::EvidenceStore {
 public:
  explicit MemoryEvidenceStore(base::Clock& clock) : clock_(clock) {}

  base::Result<std::uint64_t> Watermark(std::string_view compute_id,
                                        std::string_view stream_id) override;
  base::Result<std::uint64_t> Apply(std::string_view organisation_id, std::string_view compute_id,
                                    std::string_view stream_id,
                                    std::span<const store::EvidenceChange> changes) override;
  base::Result<store::ExecutionPage> List(const store::ExecutionFilter& filter,
                                          const std::optional<store::ExecutionCursor>& after,
                                          std::size_t limit) override;
  base::Result<evidence::Execution> Get(std::string_view organisation_id,
                                        std::string_view execution_id) override;
  base::Result<std::vector<store::LogTailRow>> LogTails(std::string_view execution_id) override;
  base::Result<std::optional<store::BundleRow>> Bundle(std::string_view execution_id) override;
  base::Result<store::ChangePage> Changed(const store::FeedPlace& after,
                                          std::size_t limit) override;
  base::Status PutHealth(std::string_view organisation_id, std::string_view compute_id,
                         const evidence::HealthReport& report, base::WallTime now) override;
  base::Result<std::vector<store::NodeHealth>> Health(std::string_view organisation_id,
                                                      std::string_view compute_id) override;
  base::Status PutClusterState(std::string_view organisation_id, std::string_view compute_id,
                               const evidence::ClusterState& state, base::WallTime now) override;
  base::Result<std::optional<store::ReportedClusterState>> ClusterState(
      std::string_view organisation_id, std::string_view compute_id) override;
  base::Result<std::size_t> DropExecutionsBefore(base::WallTime before, std::size_t limit) override;
  base::Result<bool> BlobReferenced(std::string_view blob) override;

 private:
  struct Row {
    std::string organisation_id;
    base::WallTime first_seen{};
    bool seen = false;  // itself, not only by what hangs on it
    std::uint64_t changed = 0;
    evidence::Execution execution;
    std::map<std::string, store::LogTailRow> tails;
    std::optional<store::BundleRow> bundle;
    std::int64_t SortMicros() const;
  };
  void ApplyOne(std::string_view organisation_id, std::string_view compute_id,
                const store::EvidenceChange& change);

  base::Clock& clock_;
  std::mutex mutex_;  // guards all below
  std::map<std::pair<std::string, std::string>, std::uint64_t> watermarks_;
  std::map<std::string, Row, std::less<>> rows_;
  std::uint64_t last_change_ = 0;
  std::map<std::uint64_t, std::pair<std::string, std::string>> removed_;  // organisation, id
  std::map<std::tuple<std::string, std::string, std::string>, store::NodeHealth> health_;
  std::map<std::pair<std::string, std::string>, store::ReportedClusterState> clusters_;
};

class MemorySeriesStore final : public store::SeriesStore {
 public:
  explicit MemorySeriesStore(std::size_t max_series_per_scope = 10'000)
      : max_series_(max_series_per_scope) {}

  base::Result<std::uint64_t> Watermark(std::string_view compute_id,
                                        std::string_view stream_id) override;
  base::Result<bool> Append(const store::AppendMark& mark,
                            std::span<const store::SeriesAppend> series) override;
  base::Result<std::vector<store::SeriesInfo>> List(std::string_view compute_id,
                                                    std::string_view scope,
                                                    std::string_view source) override;
  base::Result<std::vector<store::SeriesResult>> Query(const store::SeriesQuery& query) override;
  base::Result<std::uint64_t> DropBefore(base::WallTime before,
                                         const std::stop_token& stop) override;

  // How many points were ever handed to Append and taken, equal times included.
  std::uint64_t appended() const { return appended_; }

 private:
  // (compute, scope), then what sorts List: metric, node, gpu index (off GPUs first), source, uuid.
  using Place = std::pair<std::string, std::string>;
  using Name = std::tuple<std::string, std::string, std::int64_t, std::string, std::string>;
  struct Series {
    store::SeriesKey key;
    std::string unit;
    std::string attribution;
    std::map<base::WallTime, double> points;
    store::SeriesInfo Info() const;
  };
  std::mutex mutex_;  // guards all below
  const std::size_t max_series_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> marks_;
  std::map<Place, std::map<Name, Series>> scopes_;
  std::uint64_t appended_ = 0;
};

class MemoryBlobStore final : public store::BlobStore {
 public:
  explicit MemoryBlobStore(base::Clock& clock) : clock_(clock) {}

  base::Result<std::string> Put(std::string_view data) override;
  base::Result<std::string> Get(std::string_view name) override;
  base::Result<std::size_t> Sweep(base::WallTime before,
                                  const std::function<bool(std::string_view)>& referenced) override;

  std::size_t size();
  // Changes stored bytes behind the store's back, so that Get finds them corrupt.
  void Corrupt(std::string_view name);

 private:
  struct Blob {
    std::string data;
    base::WallTime put{};
    bool corrupt = false;
  };
  base::Clock& clock_;
  std::mutex mutex_;  // guards blobs_
  std::map<std::string, Blob, std::less<>> blobs_;
};

// When a step of an ingest fails: before it did anything, or after it took effect but before the
// caller learnt of it (the answer of a crashed process).
enum class FailWhen : std::uint8_t { kBefore, kAfter };
struct FailurePlan {
  // One entry per coming write of the store, in order; absent or empty: succeed.
  std::deque<std::optional<FailWhen>> next;
  base::Error error{base::Code::kResourceExhausted, "store.disk_full", "no space left on device"};
  std::optional<FailWhen> Take() {
    if (next.empty()) return std::nullopt;
    const auto when = next.front();
    next.pop_front();
    return when;
  }
};

// Forward to a store; Put, Append and Apply follow the plan. Not thread-safe.
class FailingBlobStore : public store::BlobStore {
 public:
  FailingBlobStore(store::BlobStore& to, FailurePlan& plan) : to_(to), plan_(plan) {}
  base::Result<std::string> Put(std::string_view data) override;
  base::Result<std::string> Get(std::string_view name) override { return to_.Get(name); }
  base::Result<std::size_t> Sweep(
      base::WallTime before, const std::function<bool(std::string_view)>& referenced) override {
    return to_.Sweep(before, referenced);
  }

 private:
  store::BlobStore& to_;
  FailurePlan& plan_;
};

class FailingSeriesStore : public store::SeriesStore {
 public:
  FailingSeriesStore(store::SeriesStore& to, FailurePlan& plan) : to_(to), plan_(plan) {}
  base::Result<std::uint64_t> Watermark(std::string_view compute_id,
                                        std::string_view stream_id) override {
    return to_.Watermark(compute_id, stream_id);
  }
  base::Result<bool> Append(const store::AppendMark& mark,
                            std::span<const store::SeriesAppend> series) override;
  base::Result<std::vector<store::SeriesInfo>> List(std::string_view compute_id,
                                                    std::string_view scope,
                                                    std::string_view source) override {
    return to_.List(compute_id, scope, source);
  }
  base::Result<std::vector<store::SeriesResult>> Query(const store::SeriesQuery& query) override {
    return to_.Query(query);
  }
  base::Result<std::uint64_t> DropBefore(base::WallTime before,
                                         const std::stop_token& stop) override {
    return to_.DropBefore(before, stop);
  }

 private:
  store::SeriesStore& to_;
  FailurePlan& plan_;
};

class FailingEvidenceStore : public store::EvidenceStore {
 public:
  FailingEvidenceStore(store::EvidenceStore& to, FailurePlan& plan) : to_(to), plan_(plan) {}
  base::Result<std::uint64_t> Watermark(std::string_view compute_id,
                                        std::string_view stream_id) override {
    return to_.Watermark(compute_id, stream_id);
  }
  base::Result<std::uint64_t> Apply(std::string_view organisation_id, std::string_view compute_id,
                                    std::string_view stream_id,
                                    std::span<const store::EvidenceChange> changes) override;
  base::Result<store::ExecutionPage> List(const store::ExecutionFilter& filter,
                                          const std::optional<store::ExecutionCursor>& after,
                                          std::size_t limit) override {
    return to_.List(filter, after, limit);
  }
  base::Result<evidence::Execution> Get(std::string_view organisation_id,
                                        std::string_view execution_id) override {
    return to_.Get(organisation_id, execution_id);
  }
  base::Result<std::vector<store::LogTailRow>> LogTails(std::string_view execution_id) override {
    return to_.LogTails(execution_id);
  }
  base::Result<std::optional<store::BundleRow>> Bundle(std::string_view execution_id) override {
    return to_.Bundle(execution_id);
  }
  base::Result<store::ChangePage> Changed(const store::FeedPlace& after,
                                          std::size_t limit) override {
    return to_.Changed(after, limit);
  }
  base::Status PutHealth(std::string_view organisation_id, std::string_view compute_id,
                         const evidence::HealthReport& report, base::WallTime now) override {
    return to_.PutHealth(organisation_id, compute_id, report, now);
  }
  base::Result<std::vector<store::NodeHealth>> Health(std::string_view organisation_id,
                                                      std::string_view compute_id) override {
    return to_.Health(organisation_id, compute_id);
  }
  base::Status PutClusterState(std::string_view organisation_id, std::string_view compute_id,
                               const evidence::ClusterState& state, base::WallTime now) override {
    return to_.PutClusterState(organisation_id, compute_id, state, now);
  }
  base::Result<std::optional<store::ReportedClusterState>> ClusterState(
      std::string_view organisation_id, std::string_view compute_id) override {
    return to_.ClusterState(organisation_id, compute_id);
  }
  base::Result<std::size_t> DropExecutionsBefore(base::WallTime before,
                                                 std::size_t limit) override {
    return to_.DropExecutionsBefore(before, limit);
  }
  base::Result<bool> BlobReferenced(std::string_view blob) override {
    return to_.BlobReferenced(blob);
  }

 private:
  store::EvidenceStore& to_;
  FailurePlan& plan_;
};

}  // namespace expanse::data
