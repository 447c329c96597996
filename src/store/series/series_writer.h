// Adds points to series inside a write transaction. Internal to store/series.
//
// Each series has a tail of at most kTailPoints points in its own row; a full one is packed and
// moved to the table of chunks. So an append costs one row update whatever its size, and points do
// not stay one row each. Rows that are being appended to are kept in memory.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "store/series/chunk.h"
#include "store/series/series_store.h"
#include "store/sql/database.h"

namespace expanse::store::series {

inline constexpr std::size_t kTailPoints = 512;

// One append, checked and encoded before the transaction begins.
struct PreparedAppend {
  const SeriesAppend* append = nullptr;
  Points points;        // ascending, one per time, no NaN
  std::string segment;  // of all points; empty when they are more than a tail takes
};

// Sorts points where needed, keeps the last of equal times, drops NaN.
base::Result<PreparedAppend> Prepare(const SeriesAppend& append);

// Not thread-safe: only inside write transactions of one database, which take turns.
class SeriesWriter {
 public:
  explicit SeriesWriter(std::size_t max_series_per_scope) : max_series_(max_series_per_scope) {}

  // To be called first in each transaction that appends: forgets what another process has changed,
  // and everything if the transaction fails.
  base::Status Begin(sql::Transaction& tx);
  base::Status Append(sql::Transaction& tx, const PreparedAppend& prepared);
  void Forget();

 private:
  struct Series {
    std::int64_t id = 0;
    std::string unit;
    std::string attribution;
    std::uint64_t chunk_points = 0;  // points in chunks
    std::int64_t tail_first = 0;
    std::int64_t tail_last = 0;
    std::uint64_t tail_count = 0;
    std::size_t tail_segments = 0;
    std::string tail;
  };

  base::Result<Series*> Find(sql::Transaction& tx, const SeriesAppend& append);
  base::Result<Series> Make(sql::Transaction& tx, const SeriesAppend& append);
  base::Status CheckScope(sql::Transaction& tx, const SeriesKey& key);
  base::Status ExtendTail(sql::Transaction& tx, Series& series, const PreparedAppend& prepared);
  base::Status Rewrite(sql::Transaction& tx, Series& series, const PreparedAppend& prepared);
  base::Status StoreTail(sql::Transaction& tx, Series& series, const Points& points);
  base::Status QuarantineTail(sql::Transaction& tx, Series& series);
  base::Status MergeLate(sql::Transaction& tx, Series& series, const Points& late);
  base::Status MergeIntoChunk(sql::Transaction& tx, Series& series, const Points& late,
                              std::size_t* taken);
  base::Status InsertChunk(sql::Transaction& tx, Series& series, const Points& points);

  const std::size_t max_series_;
  std::int64_t data_version_ = -1;
  std::unordered_map<std::string, Series> cache_;
  std::size_t cached_bytes_ = 0;  // an upper estimate
};

}  // namespace expanse::store::series
