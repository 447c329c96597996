#include "store/series/sqlite_series_store.h"

#include <utility>
#include <vector>

#include "store/series/series_reader.h"
#include "store/series/series_retention.h"
#include "store/series/series_tables.h"
#include "store/series/series_writer.h"
#include "store/sql/database.h"

namespace expanse::store {

struct SqliteSeriesStore::Impl {
  std::unique_ptr<sql::Database> database;
  series::SeriesWriter writer;  // only inside write transactions, which take turns
};

SqliteSeriesStore::SqliteSeriesStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteSeriesStore::~SqliteSeriesStore() = default;

base::Result<std::unique_ptr<SqliteSeriesStore>> SqliteSeriesStore::Open(
    const SqliteSeriesOptions& options) {
  EXPANSE_ASSIGN_OR_RETURN(auto database,
                           sql::Database::Open({.path = options.path, .readers = options.readers},
                                               series::SeriesMigrations()));
  return std::unique_ptr<SqliteSeriesStore>(new SqliteSeriesStore(std::make_unique<Impl>(
      std::move(database), series::SeriesWriter(options.max_series_per_scope))));
}

namespace {

base::Result<std::uint64_t> ReadWatermark(sql::Transaction& tx, std::string_view compute_id,
                                          std::string_view stream_id) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto taken,
      tx.QueryInt(
          "SELECT sequence FROM watermark WHERE compute_id = :compute AND stream_id = :stream",
          {compute_id, stream_id}));
  return static_cast<std::uint64_t>(taken.value_or(0));
}

}  // namespace

base::Result<std::uint64_t> SqliteSeriesStore::Watermark(std::string_view compute_id,
                                                         std::string_view stream_id) {
  return impl_->database->WithRead(
      [&](sql::Transaction& tx) { return ReadWatermark(tx, compute_id, stream_id); });
}

base::Result<bool> SqliteSeriesStore::Append(const AppendMark& mark,
                                             std::span<const SeriesAppend> appends) {
  std::vector<series::PreparedAppend> prepared;
  prepared.reserve(appends.size());
  for (const SeriesAppend& append : appends) {
    EXPANSE_ASSIGN_OR_RETURN(auto one, series::Prepare(append));
    prepared.push_back(std::move(one));
  }
  return impl_->database->WithWrite([&](sql::Transaction& tx) -> base::Result<bool> {
    EXPANSE_ASSIGN_OR_RETURN(const std::uint64_t taken,
                             ReadWatermark(tx, mark.compute_id, mark.stream_id));
    if (taken >= mark.sequence) return false;
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "INSERT INTO watermark (compute_id, stream_id, sequence) VALUES (:compute, :stream, "
        ":sequence)"
        " ON CONFLICT (compute_id, stream_id) DO UPDATE SET sequence = excluded.sequence",
        {mark.compute_id, mark.stream_id, mark.sequence}));
    EXPANSE_RETURN_IF_ERROR(impl_->writer.Begin(tx));
    for (const series::PreparedAppend& one : prepared)
      EXPANSE_RETURN_IF_ERROR(impl_->writer.Append(tx, one));
    return true;
  });
}

base::Result<std::vector<SeriesInfo>> SqliteSeriesStore::List(std::string_view compute_id,
                                                              std::string_view scope,
                                                              std::string_view source) {
  return impl_->database->WithRead(
      [&](sql::Transaction& tx) { return series::ListSeries(tx, compute_id, scope, source); });
}

base::Result<std::vector<SeriesResult>> SqliteSeriesStore::Query(const SeriesQuery& query) {
  return impl_->database->WithRead(
      [&](sql::Transaction& tx) { return series::QuerySeries(tx, query); });
}

base::Result<std::uint64_t> SqliteSeriesStore::DropBefore(base::WallTime before,
                                                          const std::stop_token& stop) {
  series::RetentionPass pass(base::ToMicros(before));
  std::uint64_t dropped = 0;
  while (!stop.stop_requested()) {
    auto step = impl_->database->WithWrite(
        [&](sql::Transaction& tx) -> base::Result<series::RetentionPass::Progress> {
          auto progress = pass.Step(tx);
          impl_->writer.Forget();  // rows it may know have changed or gone
          return progress;
        });
    if (!step) return std::unexpected(std::move(step).error());
    dropped += step->dropped;
    if (step->done) break;
  }
  return dropped;
}

}  // namespace expanse::store
