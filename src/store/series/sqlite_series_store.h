// The embedded series store: compressed chunks of columns in one SQLite file (format:
// docs/formats/series-chunk.md).
//
// One file for all computes, not one each: an append is one transaction with one sync whatever
// computes are in flight, the number of open files does not grow with the fleet, and retention
// walks one index. Writers of several computes take turns, which an embedded store can afford:
// encoding happens before a writer's turn, and the turn itself costs a few microseconds per series.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/series/series_store.h"

namespace expanse::store {

struct SqliteSeriesOptions {
  std::string path;  // of the file; its directory exists
  std::size_t max_series_per_scope = 20'000;
  std::size_t readers = 4;
};

// Thread-safe. Several processes may open the same file.
class SqliteSeriesStore final : public SeriesStore {
 public:
  static base::Result<std::unique_ptr<SqliteSeriesStore>> Open(const SqliteSeriesOptions& options);
  ~SqliteSeriesStore() override;

  base::Result<std::uint64_t> Watermark(std::string_view compute_id,
                                        std::string_view stream_id) override;
  base::Result<bool> Append(const AppendMark& mark, std::span<const SeriesAppend> series) override;
  base::Result<std::vector<SeriesInfo>> List(std::string_view compute_id, std::string_view scope,
                                             std::string_view source) override;
  base::Result<std::vector<SeriesResult>> Query(const SeriesQuery& query) override;
  base::Result<std::uint64_t> DropBefore(base::WallTime before,
                                         const std::stop_token& stop) override;

 private:
  struct Impl;
  explicit SqliteSeriesStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::store
