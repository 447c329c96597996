#include "store/series/series_tables.h"

#include <utility>
#include <vector>

namespace expanse::store::series {

std::span<const sql::Migration> SeriesMigrations() {
  static const std::vector<sql::Migration> migrations = {
      {1,
       "series, chunks and watermarks",
       {
           // The tail's bytes come last: what lists series need not read past the columns before.
           "CREATE TABLE series ("
           " id INTEGER PRIMARY KEY,"
           " compute_id TEXT NOT NULL, scope TEXT NOT NULL, metric TEXT NOT NULL, source TEXT NOT "
           "NULL,"
           " node TEXT NOT NULL, gpu_index {int64} NOT NULL, gpu_uuid TEXT NOT NULL,"
           " unit TEXT NOT NULL, attribution TEXT NOT NULL,"
           " chunk_points {int64} NOT NULL,"
           " tail_first {int64} NOT NULL, tail_last {int64} NOT NULL, tail_count {int64} NOT NULL,"
           " tail_data {bytes})",
           "CREATE UNIQUE INDEX series_by_key ON series"
           " (compute_id, scope, metric, node, gpu_index, source, gpu_uuid)",
           "CREATE INDEX series_by_tail_first ON series (tail_first)",
           "CREATE TABLE chunk ("
           " id INTEGER PRIMARY KEY,"
           " series_id {int64} NOT NULL REFERENCES series (id),"
           " first {int64} NOT NULL, last {int64} NOT NULL, count {int64} NOT NULL,"
           " data {bytes})",
           "CREATE INDEX chunk_by_series ON chunk (series_id, first, last)",
           "CREATE INDEX chunk_by_first ON chunk (first)",
           "CREATE TABLE watermark ("
           " compute_id TEXT NOT NULL, stream_id TEXT NOT NULL, sequence {int64} NOT NULL,"
           " PRIMARY KEY (compute_id, stream_id))",
       }},
  };
  return migrations;
}

base::Result<Points> DecodeRow(std::string_view data, std::uint64_t count, std::string_view what) {
  auto points = DecodeChunk(data);
  if (points && points->size() == count) return points;
  base::Error error = points ? base::Error{base::Code::kDataLoss, "series.corrupt",
                                           "the chunk is damaged: points are missing"}
                             : std::move(points).error();
  return std::unexpected(std::move(error).With(what));
}

}  // namespace expanse::store::series
