#include "data/memory_stores_testing.h"

#include <algorithm>
#include <cmath>

#include "base/crypto.h"

namespace expanse::data {
namespace {

using base::Code;

template <typename Call>
auto Planned(FailurePlan& plan, const Call& call) -> decltype(call()) {
  const auto when = plan.Take();
  if (when == FailWhen::kBefore) return std::unexpected(plan.error);
  auto result = call();
  if (when == FailWhen::kAfter && result) return std::unexpected(plan.error);
  return result;
}

bool Matches(const store::ExecutionFilter& filter, const std::string& organisation,
             const evidence::Execution& e) {
  return organisation == filter.organisation_id && (!filter.status || e.status == *filter.status) &&
         (!filter.outcome || e.outcome == *filter.outcome) &&
         (filter.users.empty() ||
          std::find(filter.users.begin(), filter.users.end(), e.user) != filter.users.end()) &&
         (filter.compute_id.empty() || e.compute_id == filter.compute_id) &&
         (!filter.source_type || e.source_type == *filter.source_type) &&
         (filter.native_id.empty() || e.native_id == filter.native_id) &&
         (!filter.started_after || (e.started_at && *e.started_at >= *filter.started_after)) &&
         (!filter.started_before || (e.started_at && *e.started_at < *filter.started_before));
}

store::Bucket Summary(base::WallTime start, const std::vector<double>& values) {
  store::Bucket bucket{.start = start,
                       .min = values[0],
                       .max = values[0],
                       .last = values.back(),
                       .count = values.size()};
  for (const double value : values) {
    bucket.min = std::min(bucket.min, value);
    bucket.max = std::max(bucket.max, value);
    bucket.sum += value;
  }
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t rank = (sorted.size() * 95 + 99) / 100;  // ceil(0.95 n)
  bucket.p95 = sorted[rank - 1];
  return bucket;
}

}  // namespace

// ---- records

std::int64_t MemoryEvidenceStore::Row::SortMicros() const {
  return base::ToMicros(execution.started_at.value_or(execution.submitted_at.value_or(first_seen)));
}

base::Result<std::uint64_t> MemoryEvidenceStore::Watermark(std::string_view compute_id,
                                                           std::string_view stream_id) {
  const std::lock_guard lock(mutex_);
  const auto found = watermarks_.find({std::string(compute_id), std::string(stream_id)});
  return found == watermarks_.end() ? 0 : found->second;
}

base::Result<std::uint64_t> MemoryEvidenceStore::Apply(
    std::string_view organisation_id, std::string_view compute_id, std::string_view stream_id,
    std::span<const store::EvidenceChange> changes) {
  const std::lock_guard lock(mutex_);
  std::uint64_t& watermark = watermarks_[{std::string(compute_id), std::string(stream_id)}];
  for (const store::EvidenceChange& change : changes) {
    const auto known = rows_.find(change.execution_id);
    if (change.sequence > watermark && known != rows_.end() &&
        known->second.execution.compute_id != compute_id) {
      return base::Fail(Code::kPermissionDenied, "execution.foreign", "of another compute");
    }
  }
  for (const store::EvidenceChange& change : changes) {
    if (change.sequence <= watermark) continue;
    watermark = change.sequence;
    if (change.execution || change.log_tail || change.bundle) {
      ApplyOne(organisation_id, compute_id, change);
    }
  }
  return watermark;
}

void MemoryEvidenceStore::ApplyOne(std::string_view organisation_id, std::string_view compute_id,
                                   const store::EvidenceChange& change) {
  const auto [at, added] = rows_.try_emplace(change.execution_id);
  Row& row = at->second;
  if (added) {
    row.organisation_id = organisation_id;
    row.first_seen = clock_.Now();
    row.execution.execution_id = change.execution_id;
    row.execution.compute_id = compute_id;
    row.execution.source_type = change.source_type;
  }
  if (change.execution) {
    row.seen = true;
    row.execution = evidence::Merge(row.execution, *change.execution);
  }
  if (change.bundle) row.bundle = change.bundle;
  if (change.execution || change.bundle) row.changed = ++last_change_;
  if (!change.log_tail) return;
  store::LogTailRow& known = row.tails[change.log_tail->stream];
  if (change.log_tail->total_bytes < known.total_bytes) return;  // an older one that came late
  store::LogTailRow tail = *change.log_tail;
  if (tail.first_error_blob.empty()) {  // once known it stays known
    tail.first_error_blob = known.first_error_blob;
    tail.first_error_offset = known.first_error_offset;
  }
  known = std::move(tail);
}

base::Result<store::ExecutionPage> MemoryEvidenceStore::List(
    const store::ExecutionFilter& filter, const std::optional<store::ExecutionCursor>& after,
    std::size_t limit) {
  const std::lock_guard lock(mutex_);
  using Place = std::pair<std::int64_t, std::string>;
  std::vector<std::pair<Place, const evidence::Execution*>> found;
  for (const auto& [id, row] : rows_) {
    Place place{row.SortMicros(), id};
    if (after && place >= Place{after->sort_micros, after->execution_id}) continue;
    if (row.seen && Matches(filter, row.organisation_id, row.execution))
      found.emplace_back(std::move(place), &row.execution);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  store::ExecutionPage page;
  for (const auto& [place, execution] : found) {
    if (page.executions.size() == limit) {
      const Place& last = found[limit - 1].first;
      page.next = store::ExecutionCursor{last.first, last.second};
      break;
    }
    page.executions.push_back(*execution);
  }
  return page;
}

base::Result<evidence::Execution> MemoryEvidenceStore::Get(std::string_view organisation_id,
                                                           std::string_view execution_id) {
  const std::lock_guard lock(mutex_);
  const auto found = rows_.find(execution_id);
  if (found == rows_.end() || !found->second.seen ||
      found->second.organisation_id != organisation_id) {
    return base::Fail(Code::kNotFound, "execution.not_found", "no such execution");
  }
  return found->second.execution;
}

base::Result<std::vector<store::LogTailRow>> MemoryEvidenceStore::LogTails(
    std::string_view execution_id) {
  const std::lock_guard lock(mutex_);
  std::vector<store::LogTailRow> tails;
  if (const auto found = rows_.find(execution_id); found != rows_.end()) {
    for (const auto& [stream, tail] : found->second.tails) tails.push_back(tail);
  }
  return tails;
}

base::Result<std::optional<store::BundleRow>> MemoryEvidenceStore::Bundle(
    std::string_view execution_id) {
  const std::lock_guard lock(mutex_);
  const auto found = rows_.find(execution_id);
  return found == rows_.end() ? std::nullopt : found->second.bundle;
}

base::Result<store::ChangePage> MemoryEvidenceStore::Changed(const store::FeedPlace& from,
                                                             std::size_t limit) {
  const std::lock_guard lock(mutex_);
  store::ChangePage page;
  const std::uint64_t after = from.change;
  page.restart = after > last_change_;
  if (page.restart) return page;
  std::map<std::uint64_t, store::ChangedExecution> changed;
  for (const auto& [id, row] : rows_) {
    if (!row.seen || row.changed <= after) continue;
    changed[row.changed] = {.change = row.changed,
                            .organisation_id = row.organisation_id,
                            .execution_id = id,
                            .execution = row.execution};
  }
  for (auto at = removed_.upper_bound(after); at != removed_.end(); ++at) {
    changed[at->first] = {.change = at->first,
                          .organisation_id = at->second.first,
                          .execution_id = at->second.second,
                          .removed = true};
  }
  page.next = {.change = after, .began = after == 0 ? last_change_ : from.began};
  for (auto& [number, execution] : changed) {
    if (page.changes.size() == limit) break;
    page.next.change = number;
    page.changes.push_back(std::move(execution));
  }
  return page;
}

base::Status MemoryEvidenceStore::PutHealth(std::string_view organisation_id,
                                            std::string_view compute_id,
                                            const evidence::HealthReport& report,
                                            base::WallTime now) {
  const std::lock_guard lock(mutex_);
  store::NodeHealth& node =
      health_[{std::string(organisation_id), std::string(compute_id), report.node}];
  if (node.reported_at <= now) node = {report, now};
  return {};
}

base::Result<std::vector<store::NodeHealth>> MemoryEvidenceStore::Health(
    std::string_view organisation_id, std::string_view compute_id) {
  const std::lock_guard lock(mutex_);
  std::vector<store::NodeHealth> nodes;
  for (const auto& [key, node] : health_) {
    if (std::get<0>(key) == organisation_id && std::get<1>(key) == compute_id)
      nodes.push_back(node);
  }
  return nodes;
}

base::Status MemoryEvidenceStore::PutClusterState(std::string_view organisation_id,
                                                  std::string_view compute_id,
                                                  const evidence::ClusterState& state,
                                                  base::WallTime now) {
  const std::lock_guard lock(mutex_);
  store::ReportedClusterState& known =
      clusters_[{std::string(organisation_id), std::string(compute_id)}];
  if (known.reported_at <= now) known = {state, now};
  return {};
}

base::Result<std::optional<store::ReportedClusterState>> MemoryEvidenceStore::ClusterState(
    std::string_view organisation_id, std::string_view compute_id) {
  const std::lock_guard lock(mutex_);
  const auto found = clusters_.find({std::string(organisation_id), std::string(compute_id)});
  if (found == clusters_.end()) return std::nullopt;
  return found->second;
}

base::Result<std::size_t> MemoryEvidenceStore::DropExecutionsBefore(base::WallTime before,
                                                                    std::size_t limit) {
  const std::lock_guard lock(mutex_);
  std::size_t dropped = 0;
  for (auto at = rows_.begin(); at != rows_.end() && dropped < limit;) {
    const Row& row = at->second;
    // What is over without an end, and what was never seen itself, goes by its first sight.
    const bool over = !row.seen || evidence::IsTerminal(row.execution.status);
    const auto ended = row.execution.ended_at
                           ? row.execution.ended_at
                           : (over ? std::optional(row.first_seen) : std::nullopt);
    if (ended && *ended < before) {
      if (row.seen) removed_[++last_change_] = {row.organisation_id, at->first};
      at = rows_.erase(at);
      ++dropped;
    } else {
      ++at;
    }
  }
  return dropped;
}

base::Result<bool> MemoryEvidenceStore::BlobReferenced(std::string_view blob) {
  if (blob.empty()) return false;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, row] : rows_) {
    for (const auto& [stream, tail] : row.tails) {
      if (tail.data_blob == blob || tail.first_error_blob == blob) return true;
    }
    if (!row.bundle) continue;
    for (const auto& file : row.bundle->files) {
      if (file.blob == blob) return true;
    }
  }
  return false;
}

// ---- series

store::SeriesInfo MemorySeriesStore::Series::Info() const {
  return {.key = key,
          .unit = unit,
          .attribution = attribution,
          .point_count = points.size(),
          .first = points.begin()->first,
          .last = points.rbegin()->first};
}

base::Result<std::uint64_t> MemorySeriesStore::Watermark(std::string_view compute_id,
                                                         std::string_view stream_id) {
  const std::lock_guard lock(mutex_);
  const auto found = marks_.find({std::string(compute_id), std::string(stream_id)});
  return found == marks_.end() ? 0 : found->second;
}

base::Result<bool> MemorySeriesStore::Append(const store::AppendMark& mark,
                                             std::span<const store::SeriesAppend> series) {
  const std::lock_guard lock(mutex_);
  const auto name = [](const store::SeriesKey& key) {
    return Name{key.metric, key.node,
                key.gpu_index ? static_cast<std::int64_t>(*key.gpu_index) : -1, key.source,
                key.gpu_uuid};
  };
  std::uint64_t& taken = marks_[{mark.compute_id, mark.stream_id}];
  if (mark.sequence <= taken) return false;
  std::map<Place, std::map<Name, bool>> added;
  for (const store::SeriesAppend& one : series) {
    const Place place{one.key.compute_id, one.key.scope};
    if (!scopes_[place].contains(name(one.key))) added[place][name(one.key)] = true;
    if (scopes_[place].size() + added[place].size() > max_series_) {
      return base::Fail(Code::kResourceExhausted, "series.too_many",
                        "too many series in one scope");
    }
  }
  for (const store::SeriesAppend& one : series) {
    Series& into = scopes_[{one.key.compute_id, one.key.scope}][name(one.key)];
    into.key = one.key;
    into.unit = one.unit;
    into.attribution = one.attribution;
    for (std::size_t i = 0; i < one.times.size(); ++i) {
      if (std::isnan(one.values[i])) continue;
      into.points[one.times[i]] = one.values[i];
      ++appended_;
    }
  }
  for (auto& [place, all] : scopes_)
    std::erase_if(all, [](const auto& entry) { return entry.second.points.empty(); });
  taken = mark.sequence;
  return true;
}

base::Result<std::vector<store::SeriesInfo>> MemorySeriesStore::List(std::string_view compute_id,
                                                                     std::string_view scope,
                                                                     std::string_view source) {
  const std::lock_guard lock(mutex_);
  std::vector<store::SeriesInfo> infos;
  for (const auto& [name, series] : scopes_[{std::string(compute_id), std::string(scope)}]) {
    if (source.empty() || series.key.source == source) infos.push_back(series.Info());
  }
  return infos;
}

base::Result<std::vector<store::SeriesResult>> MemorySeriesStore::Query(
    const store::SeriesQuery& query) {
  const std::lock_guard lock(mutex_);
  std::vector<store::SeriesResult> results;
  for (const auto& [name, series] : scopes_[{query.compute_id, query.scope}]) {
    if (!query.metric.empty() && series.key.metric != query.metric) continue;
    if (!query.source.empty() && series.key.source != query.source) continue;
    if (query.gpu_index && series.key.gpu_index != query.gpu_index) continue;
    if (!store::OfNodes(query.nodes, series.key.node)) continue;
    store::SeriesResult result{.info = series.Info()};
    std::map<base::WallTime, std::vector<double>> buckets;
    for (auto at = series.points.lower_bound(query.from);
         at != series.points.end() && at->first < query.to; ++at) {
      const auto width = std::chrono::duration_cast<std::chrono::microseconds>(query.interval);
      auto start = at->first;
      if (width.count() > 0) {
        const auto over = start.time_since_epoch() % width;
        start -= over.count() < 0 ? over + width : over;
      }
      buckets[start].push_back(at->second);
    }
    for (const auto& [start, values] : buckets) {
      if (result.buckets.size() == query.max_points) {
        result.truncated = true;
        break;
      }
      result.buckets.push_back(Summary(start, values));
    }
    results.push_back(std::move(result));
  }
  return results;
}

base::Result<std::uint64_t> MemorySeriesStore::DropBefore(base::WallTime before,
                                                          const std::stop_token& stop) {
  if (stop.stop_requested()) return std::uint64_t{0};
  const std::lock_guard lock(mutex_);
  std::uint64_t dropped = 0;
  for (auto& [place, all] : scopes_) {
    for (auto& [name, series] : all) {
      const auto end = series.points.lower_bound(before);
      dropped += static_cast<std::uint64_t>(std::distance(series.points.begin(), end));
      series.points.erase(series.points.begin(), end);
    }
    std::erase_if(all, [](const auto& entry) { return entry.second.points.empty(); });
  }
  return dropped;
}

// ---- blobs

base::Result<std::string> MemoryBlobStore::Put(std::string_view data) {
  std::string name = "sha256:" + base::Sha256Hex(data);
  const std::lock_guard lock(mutex_);
  blobs_[name] = {std::string(data), clock_.Now(), false};
  return name;
}

base::Result<std::string> MemoryBlobStore::Get(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = blobs_.find(name);
  if (found == blobs_.end()) return base::Fail(Code::kNotFound, "blob.not_found", "no such blob");
  if (found->second.corrupt)
    return base::Fail(Code::kDataLoss, "blob.corrupt", "a blob's bytes changed");
  return found->second.data;
}

base::Result<std::size_t> MemoryBlobStore::Sweep(
    base::WallTime before, const std::function<bool(std::string_view)>& referenced) {
  std::vector<std::string> old;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, blob] : blobs_) {
      if (blob.put < before) old.push_back(name);
    }
  }
  std::size_t swept = 0;
  for (const std::string& name : old) {
    if (referenced(name)) continue;  // may put blobs itself
    const std::lock_guard lock(mutex_);
    const auto found = blobs_.find(name);
    if (found == blobs_.end() || found->second.put >= before) continue;
    blobs_.erase(found);
    ++swept;
  }
  return swept;
}

std::size_t MemoryBlobStore::size() {
  const std::lock_guard lock(mutex_);
  return blobs_.size();
}

void MemoryBlobStore::Corrupt(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = blobs_.find(name); found != blobs_.end()) found->second.corrupt = true;
}

// ---- failures

base::Result<std::string> FailingBlobStore::Put(std::string_view data) {
  return Planned(plan_, [&] { return to_.Put(data); });
}
base::Result<bool> FailingSeriesStore::Append(const store::AppendMark& mark,
                                              std::span<const store::SeriesAppend> series) {
  return Planned(plan_, [&] { return to_.Append(mark, series); });
}
base::Result<std::uint64_t> FailingEvidenceStore::Apply(
    std::string_view organisation_id, std::string_view compute_id, std::string_view stream_id,
    std::span<const store::EvidenceChange> changes) {
  return Planned(plan_, [&] { return to_.Apply(organisation_id, compute_id, stream_id, changes); });
}

}  // namespace expanse::data
