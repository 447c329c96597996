#include "store/series/series_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/log.h"
#include "store/series/series_tables.h"

namespace expanse::store::series {
namespace {

using sql::Bytes;
using sql::Column;
using sql::Row;

// Segments in a tail before it is encoded anew: small appends would otherwise leave more heads than
// points.
constexpr std::size_t kMaxTailSegments = 16;
constexpr std::size_t kCacheBytes = 64U << 20;
constexpr std::size_t kEntryBytes = 512;  // of a cached series besides its tail

std::string CacheKey(const SeriesKey& key) {
  std::string text;
  for (const std::string* part :
       {&key.compute_id, &key.scope, &key.metric, &key.source, &key.node, &key.gpu_uuid}) {
    text += *part;
    text += '\0';  // Prepare refuses it in names
  }
  if (key.gpu_index) text += std::to_string(*key.gpu_index);
  return text;
}

std::int64_t GpuIndex(const SeriesKey& key) {
  return key.gpu_index ? std::int64_t{*key.gpu_index} : kNoGpu;
}

std::string Describe(const SeriesKey& key) {
  return fmt::format("series {} of node '{}' in '{}'", key.metric, key.node,
                     key.scope.empty() ? key.compute_id : key.scope);
}

}  // namespace

base::Result<PreparedAppend> Prepare(const SeriesAppend& append) {
  const SeriesKey& key = append.key;
  for (const std::string* part :
       {&key.compute_id, &key.scope, &key.metric, &key.source, &key.node, &key.gpu_uuid}) {
    if (part->find('\0') != std::string::npos) {
      return base::Fail(base::Code::kInvalidArgument, "series.key",
                        "a name of a series must not contain NUL");
    }
  }
  if (append.times.size() != append.values.size()) {
    return base::Fail(base::Code::kInvalidArgument, "series.columns",
                      "times and values differ in length");
  }
  std::vector<std::size_t> order(append.times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!std::is_sorted(append.times.begin(), append.times.end())) {
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return append.times[a] != append.times[b] ? append.times[a] < append.times[b] : a < b;
    });
  }
  PreparedAppend prepared{.append = &append, .points = {}, .segment = {}};
  Points& points = prepared.points;
  points.times.reserve(order.size());
  points.values.reserve(order.size());
  for (std::size_t i : order) {
    if (std::isnan(append.values[i])) continue;
    const std::int64_t time = base::ToMicros(append.times[i]);
    if (!points.empty() && points.times.back() == time) {
      points.values.back() = append.values[i];
      continue;
    }
    points.times.push_back(time);
    points.values.push_back(append.values[i]);
  }
  if (!points.empty() && points.size() <= kTailPoints)
    prepared.segment = EncodeSegment(points, /*pack=*/false);
  return prepared;
}

base::Status SeriesWriter::Begin(sql::Transaction& tx) {
  tx.OnRollback([this] { Forget(); });
  // Changes when another connection has written; our own writes leave it as it is.
  EXPANSE_ASSIGN_OR_RETURN(const auto version, tx.QueryInt("PRAGMA data_version"));
  if (version.value_or(0) != data_version_ || cached_bytes_ > kCacheBytes) Forget();
  data_version_ = version.value_or(0);
  return {};
}

void SeriesWriter::Forget() {
  cache_.clear();
  cached_bytes_ = 0;
}

base::Status SeriesWriter::Append(sql::Transaction& tx, const PreparedAppend& prepared) {
  if (prepared.points.empty()) return {};
  EXPANSE_ASSIGN_OR_RETURN(Series* const series, Find(tx, *prepared.append));
  const std::size_t before = series->tail.size();
  if (series->tail_count == 0) {
    EXPANSE_RETURN_IF_ERROR(StoreTail(tx, *series, prepared.points));
  } else if (prepared.points.times.front() > series->tail_last && !prepared.segment.empty() &&
             series->tail_count + prepared.points.size() <= kTailPoints &&
             series->tail_segments < kMaxTailSegments) {
    EXPANSE_RETURN_IF_ERROR(ExtendTail(tx, *series, prepared));
  } else {
    EXPANSE_RETURN_IF_ERROR(Rewrite(tx, *series, prepared));
  }
  cached_bytes_ += series->tail.size() > before ? series->tail.size() - before : 0;
  return {};
}

base::Result<SeriesWriter::Series*> SeriesWriter::Find(sql::Transaction& tx,
                                                       const SeriesAppend& append) {
  std::string key = CacheKey(append.key);
  auto found = cache_.find(key);
  if (found == cache_.end()) {
    std::optional<Series> loaded;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        "SELECT id, unit, attribution, chunk_points, tail_first, tail_last, tail_count, tail_data "
        "FROM series"
        " WHERE compute_id = :compute AND scope = :scope AND metric = :metric AND node = :node"
        " AND gpu_index = :gpu AND source = :source AND gpu_uuid = :uuid",
        {append.key.compute_id, append.key.scope, append.key.metric, append.key.node,
         GpuIndex(append.key), append.key.source, append.key.gpu_uuid},
        {Column::kInt, Column::kText, Column::kText, Column::kInt, Column::kInt, Column::kInt,
         Column::kInt, Column::kBytes},
        [&](const Row& row) {
          loaded = Series{.id = row.Int(0),
                          .unit = row.Text(1),
                          .attribution = row.Text(2),
                          .chunk_points = row.Unsigned(3),
                          .tail_first = row.Int(4),
                          .tail_last = row.Int(5),
                          .tail_count = row.Unsigned(6),
                          .tail_segments = CountSegments(row.Blob(7)),
                          .tail = row.Blob(7)};
        }));
    if (!loaded) {
      EXPANSE_ASSIGN_OR_RETURN(loaded, Make(tx, append));
    }
    cached_bytes_ += key.size() + kEntryBytes + loaded->tail.size();
    found = cache_.emplace(std::move(key), std::move(*loaded)).first;
  }
  Series& series = found->second;
  if (series.unit != append.unit || series.attribution != append.attribution) {
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("UPDATE series SET unit = :unit, attribution = :attribution WHERE id = :id",
                   {append.unit, append.attribution, series.id}));
    series.unit = append.unit;
    series.attribution = append.attribution;
  }
  return &series;
}

base::Result<SeriesWriter::Series> SeriesWriter::Make(sql::Transaction& tx,
                                                      const SeriesAppend& append) {
  EXPANSE_RETURN_IF_ERROR(CheckScope(tx, append.key));
  EXPANSE_ASSIGN_OR_RETURN(const auto id,
                           tx.QueryInt("INSERT INTO series (compute_id, scope, metric, source, "
                                       "node, gpu_index, gpu_uuid, unit, attribution,"
                                       " chunk_points, tail_first, tail_last, tail_count) VALUES"
                                       " (:compute, :scope, :metric, :source, :node, :gpu, :uuid, "
                                       ":unit, :attribution, 0, 0, 0, 0)"
                                       " RETURNING id",
                                       {append.key.compute_id, append.key.scope, append.key.metric,
                                        append.key.source, append.key.node, GpuIndex(append.key),
                                        append.key.gpu_uuid, append.unit, append.attribution}));
  Series series;
  series.id = id.value_or(0);
  series.unit = append.unit;
  series.attribution = append.attribution;
  return series;
}

base::Status SeriesWriter::CheckScope(sql::Transaction& tx, const SeriesKey& key) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto count,
      tx.QueryInt("SELECT COUNT(*) FROM series WHERE compute_id = :compute AND scope = :scope",
                  {key.compute_id, key.scope}));
  if (static_cast<std::size_t>(count.value_or(0)) < max_series_) return {};
  return base::Fail(base::Code::kResourceExhausted, "series.too_many",
                    fmt::format("'{}' already has {} series, the most that one may have",
                                key.scope.empty() ? key.compute_id : key.scope, max_series_));
}

// The common case: later points that fit. One update, nothing decoded.
base::Status SeriesWriter::ExtendTail(sql::Transaction& tx, Series& series,
                                      const PreparedAppend& prepared) {
  series.tail += prepared.segment;
  ++series.tail_segments;
  series.tail_last = prepared.points.times.back();
  series.tail_count += prepared.points.size();
  EXPANSE_RETURN_IF_ERROR(tx.Execute(
      "UPDATE series SET tail_last = :last, tail_count = :count, tail_data = :data WHERE id = :id",
      {series.tail_last, series.tail_count, Bytes{series.tail}, series.id}));
  return {};
}

// Everything else: a full tail, many small segments, points out of order.
base::Status SeriesWriter::Rewrite(sql::Transaction& tx, Series& series,
                                   const PreparedAppend& prepared) {
  const std::string name = Describe(prepared.append->key);
  const Points& points = prepared.points;
  const auto split = static_cast<std::size_t>(
      std::lower_bound(points.times.begin(), points.times.end(), series.tail_first) -
      points.times.begin());
  const bool late = split > 0 && series.chunk_points > 0;
  if (late) EXPANSE_RETURN_IF_ERROR(MergeLate(tx, series, points.Slice(0, split)));
  if (late && split == points.size()) return {};

  auto tail = DecodeRow(series.tail, series.tail_count, name);
  if (!tail) {
    base::LogError("series.corrupt", {{"series", name}, {"error", tail.error().message}});
    EXPANSE_RETURN_IF_ERROR(QuarantineTail(tx, series));
    tail = Points{};
  }
  return StoreTail(tx, series,
                   MergePoints(*tail, late ? points.Slice(split, points.size()) : points));
}

// Moves what does not fit into chunks and writes the rest as the new tail, which is never empty.
base::Status SeriesWriter::StoreTail(sql::Transaction& tx, Series& series, const Points& points) {
  std::size_t from = 0;
  for (; points.size() - from > kTailPoints; from += kTailPoints) {
    EXPANSE_RETURN_IF_ERROR(InsertChunk(tx, series, points.Slice(from, from + kTailPoints)));
  }
  const Points rest = points.Slice(from, points.size());
  series.tail = EmptyChunk() + EncodeSegment(rest, /*pack=*/false);
  series.tail_segments = 1;
  series.tail_first = rest.times.front();
  series.tail_last = rest.times.back();
  series.tail_count = rest.size();
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("UPDATE series SET chunk_points = :points, tail_first = :first, tail_last = "
                 ":last, tail_count = :count,"
                 " tail_data = :data WHERE id = :id",
                 {series.chunk_points, series.tail_first, series.tail_last, series.tail_count,
                  Bytes{series.tail}, series.id}));
  return {};
}

// A damaged tail becomes a chunk as it is: reads of its time fail and say so, ingest goes on.
base::Status SeriesWriter::QuarantineTail(sql::Transaction& tx, Series& series) {
  EXPANSE_RETURN_IF_ERROR(tx.Execute(
      "INSERT INTO chunk (series_id, first, last, count, data) VALUES (:series, :first, :last, "
      ":count, :data)",
      {series.id, series.tail_first, series.tail_last, series.tail_count, Bytes{series.tail}}));
  series.chunk_points += series.tail_count;
  return {};
}

base::Status SeriesWriter::InsertChunk(sql::Transaction& tx, Series& series, const Points& points) {
  const std::string data = PackChunk(points);
  EXPANSE_RETURN_IF_ERROR(tx.Execute(
      "INSERT INTO chunk (series_id, first, last, count, data) VALUES (:series, :first, :last, "
      ":count, :data)",
      {series.id, points.times.front(), points.times.back(), points.size(), Bytes{data}}));
  series.chunk_points += points.size();
  return {};
}

base::Status SeriesWriter::MergeLate(sql::Transaction& tx, Series& series, const Points& late) {
  for (std::size_t from = 0; from < late.size();) {
    std::size_t taken = 0;
    EXPANSE_RETURN_IF_ERROR(MergeIntoChunk(tx, series, late.Slice(from, late.size()), &taken));
    from += taken;
  }
  EXPANSE_RETURN_IF_ERROR(tx.Execute("UPDATE series SET chunk_points = :points WHERE id = :id",
                                     {series.chunk_points, series.id}));
  return {};
}

// Puts the first points of `late` into the chunk that they belong to: the last one that begins at
// or before them, else the first of all. `taken` says how many went there.
base::Status SeriesWriter::MergeIntoChunk(sql::Transaction& tx, Series& series, const Points& late,
                                          std::size_t* taken) {
  struct Chunk {
    std::int64_t id = 0;
    std::int64_t first = 0;
    std::uint64_t count = 0;
    std::string data;
  };
  std::optional<Chunk> chunk;
  const auto take = [&](const Row& row) {
    chunk = Chunk{row.Int(0), row.Int(1), row.Unsigned(2), row.Blob(3)};
  };
  const std::initializer_list<Column> columns = {Column::kInt, Column::kInt, Column::kInt,
                                                 Column::kBytes};
  EXPANSE_RETURN_IF_ERROR(
      tx.Query("SELECT id, first, count, data FROM chunk WHERE series_id = :series"
               " AND first <= :time ORDER BY first DESC LIMIT 1",
               {series.id, late.times.front()}, columns, take));
  if (!chunk) {
    EXPANSE_RETURN_IF_ERROR(
        tx.Query("SELECT id, first, count, data FROM chunk WHERE series_id = :series"
                 " ORDER BY first LIMIT 1",
                 {series.id}, columns, take));
  }
  std::optional<std::int64_t> next;
  if (chunk) {
    EXPANSE_ASSIGN_OR_RETURN(
        next,
        tx.QueryInt("SELECT MIN(first) FROM chunk WHERE series_id = :series AND first > :first",
                    {series.id, chunk->first}));
  }
  const auto end =
      next ? std::lower_bound(late.times.begin(), late.times.end(), *next) : late.times.end();
  *taken = static_cast<std::size_t>(end - late.times.begin());
  const Points mine = late.Slice(0, *taken);

  auto known = chunk ? DecodeRow(chunk->data, chunk->count, "late points") : Points{};
  if (!chunk || !known) return InsertChunk(tx, series, mine);  // beside a damaged one; reads merge

  const Points merged = MergePoints(*known, mine);
  const std::size_t cut = merged.size() > 2 * kTailPoints ? kTailPoints : merged.size();
  const Points kept = merged.Slice(0, cut);
  const std::string data = PackChunk(kept);
  EXPANSE_RETURN_IF_ERROR(tx.Execute(
      "UPDATE chunk SET first = :first, last = :last, count = :count, data = :data WHERE id = :id",
      {kept.times.front(), kept.times.back(), kept.size(), Bytes{data}, chunk->id}));
  series.chunk_points += kept.size() - known->size();
  for (std::size_t from = cut; from < merged.size(); from += kTailPoints) {
    EXPANSE_RETURN_IF_ERROR(
        InsertChunk(tx, series, merged.Slice(from, std::min(from + kTailPoints, merged.size()))));
  }
  return {};
}

}  // namespace expanse::store::series
