#include "store/series/series_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "store/series/bucket_builder.h"
#include "store/series/chunk.h"
#include "store/series/series_tables.h"

namespace expanse::store::series {
namespace {

using sql::Column;
using sql::Row;
using sql::Value;

constexpr std::int64_t kMaxIntervalSeconds = 400LL * 366 * 86400;

// A series with its tail, as one row gives them.
struct SeriesRow {
  std::int64_t id = 0;
  SeriesInfo info;
  std::int64_t tail_first = 0;
  std::int64_t tail_last = 0;
  std::uint64_t tail_count = 0;
  std::string tail;
};

// Which rows to read: columns that are empty are not compared.
struct Selection {
  std::string_view compute_id;
  std::string_view scope;
  std::string_view metric;
  std::string_view source;
  std::optional<std::uint32_t> gpu_index;
  bool with_tail = false;
};

SeriesRow ReadRow(const Row& row, const Selection& selection) {
  SeriesRow out;
  out.id = row.Int(0);
  SeriesKey& key = out.info.key;
  key.compute_id = selection.compute_id;
  key.scope = selection.scope;
  key.metric = row.Text(1);
  key.source = row.Text(2);
  key.node = row.Text(3);
  if (row.Int(4) != kNoGpu) key.gpu_index = static_cast<std::uint32_t>(row.Int(4));
  key.gpu_uuid = row.Text(5);
  out.info.unit = row.Text(6);
  out.info.attribution = row.Text(7);
  out.tail_first = row.Int(9);
  out.tail_last = row.Int(10);
  out.tail_count = row.Unsigned(11);
  out.info.point_count = row.Unsigned(8) + out.tail_count;
  out.info.first =
      base::FromMicros(row.IsNull(12) ? out.tail_first : std::min(row.Int(12), out.tail_first));
  out.info.last = base::FromMicros(out.tail_last);
  if (selection.with_tail) out.tail = row.Blob(13);
  return out;
}

base::Result<std::vector<SeriesRow>> Select(sql::Transaction& tx, const Selection& selection) {
  std::string sql = fmt::format(
      "SELECT id, metric, source, node, gpu_index, gpu_uuid, unit, attribution, chunk_points, "
      "tail_first, tail_last,"
      " tail_count, (SELECT MIN(first) FROM chunk WHERE series_id = series.id), {} FROM series"
      " WHERE compute_id = :compute AND scope = :scope",
      selection.with_tail ? "tail_data" : "NULL");
  std::vector<Value> params = {selection.compute_id, selection.scope};
  if (!selection.metric.empty()) {
    sql += " AND metric = :metric";
    params.emplace_back(selection.metric);
  }
  if (!selection.source.empty()) {
    sql += " AND source = :source";
    params.emplace_back(selection.source);
  }
  if (selection.gpu_index) {
    sql += " AND gpu_index = :gpu";
    params.emplace_back(*selection.gpu_index);
  }
  sql += " ORDER BY metric, node, gpu_index, source, gpu_uuid";
  std::vector<SeriesRow> rows;
  EXPANSE_RETURN_IF_ERROR(
      tx.Query(sql, params,
               {Column::kInt, Column::kText, Column::kText, Column::kText, Column::kInt,
                Column::kText, Column::kText, Column::kText, Column::kInt, Column::kInt,
                Column::kInt, Column::kInt, Column::kInt, Column::kBytes},
               [&](const Row& row) { rows.push_back(ReadRow(row, selection)); }));
  return rows;
}

std::string Describe(const SeriesKey& key) {
  return fmt::format("series {} of node '{}' in '{}'", key.metric, key.node,
                     key.scope.empty() ? key.compute_id : key.scope);
}

// Feeds the points of chunks to a builder, in order. Chunks arrive by their first time; where two
// overlap (late points beside a damaged chunk) they are merged first.
class WindowFeed {
 public:
  WindowFeed(std::int64_t from, std::int64_t to, BucketBuilder& builder)
      : from_(from), to_(to), builder_(builder) {}

  // False when no more points are wanted.
  bool Add(Points points) {
    if (points.empty()) return wanted_;
    if (!pending_.empty() && points.times.front() <= pending_.times.back()) {
      pending_ = MergePoints(pending_, points);
      return wanted_;
    }
    Flush();
    pending_ = std::move(points);
    return wanted_;
  }
  void Flush() {
    for (std::size_t i = 0; i < pending_.size() && wanted_; ++i) {
      const std::int64_t time = pending_.times[i];
      if (time >= to_) {
        wanted_ = false;
      } else if (time >= from_) {
        wanted_ = builder_.Add(time, pending_.values[i]);
      }
    }
    pending_ = {};
  }

 private:
  const std::int64_t from_;
  const std::int64_t to_;
  BucketBuilder& builder_;
  Points pending_;
  bool wanted_ = true;
};

base::Result<SeriesResult> ReadWindow(sql::Transaction& tx, const SeriesQuery& query,
                                      SeriesRow series) {
  const std::int64_t from = base::ToMicros(query.from);
  const std::int64_t to = base::ToMicros(query.to);
  BucketBuilder builder(std::chrono::microseconds(query.interval).count(), query.max_points);
  WindowFeed feed(from, to, builder);
  const std::string name = Describe(series.info.key);
  bool wanted = true;
  EXPANSE_RETURN_IF_ERROR(tx.Query(
      "SELECT count, data FROM chunk WHERE series_id = :series AND first < :to AND last >= :from "
      "ORDER BY first, id",
      {series.id, to, from}, {Column::kInt, Column::kBytes},
      [&](const Row& row) -> base::Result<bool> {
        EXPANSE_ASSIGN_OR_RETURN(Points points, DecodeRow(row.Blob(1), row.Unsigned(0), name));
        return wanted = feed.Add(std::move(points));
      }));
  if (wanted && series.tail_count > 0 && series.tail_first < to && series.tail_last >= from) {
    EXPANSE_ASSIGN_OR_RETURN(Points points, DecodeRow(series.tail, series.tail_count, name));
    feed.Add(std::move(points));
  }
  feed.Flush();
  SeriesResult result{.info = std::move(series.info),
                      .buckets = builder.Finish(),
                      .truncated = builder.truncated()};
  return result;
}

}  // namespace

base::Result<std::vector<SeriesInfo>> ListSeries(sql::Transaction& tx, std::string_view compute_id,
                                                 std::string_view scope, std::string_view source) {
  EXPANSE_ASSIGN_OR_RETURN(auto rows, Select(tx, {.compute_id = compute_id,
                                                  .scope = scope,
                                                  .metric = {},
                                                  .source = source,
                                                  .gpu_index = {},
                                                  .with_tail = false}));
  std::vector<SeriesInfo> list;
  list.reserve(rows.size());
  for (SeriesRow& row : rows) list.push_back(std::move(row.info));
  return list;
}

base::Result<std::vector<SeriesResult>> QuerySeries(sql::Transaction& tx,
                                                    const SeriesQuery& query) {
  if (query.interval.count() < 0 || query.interval.count() > kMaxIntervalSeconds) {
    return base::Fail(base::Code::kInvalidArgument, "series.interval",
                      "the interval is negative or too long");
  }
  EXPANSE_ASSIGN_OR_RETURN(auto rows, Select(tx, {.compute_id = query.compute_id,
                                                  .scope = query.scope,
                                                  .metric = query.metric,
                                                  .source = query.source,
                                                  .gpu_index = query.gpu_index,
                                                  .with_tail = true}));
  std::vector<SeriesResult> results;
  results.reserve(rows.size());
  for (SeriesRow& row : rows) {
    if (!OfNodes(query.nodes, row.info.key.node)) continue;
    EXPANSE_ASSIGN_OR_RETURN(auto result, ReadWindow(tx, query, std::move(row)));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace expanse::store::series
