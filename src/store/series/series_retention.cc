#include "store/series/series_retention.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "store/series/chunk.h"
#include "store/series/series_tables.h"

namespace expanse::store::series {
namespace {

using sql::Bytes;
using sql::Column;
using sql::Row;

struct Piece {
  std::int64_t id = 0;  // of the chunk, or of the series for a tail
  std::int64_t series_id = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::uint64_t count = 0;
};

base::Result<std::vector<Piece>> ReadPieces(sql::Transaction& tx, std::string_view sql,
                                            std::initializer_list<sql::Value> params) {
  std::vector<Piece> pieces;
  EXPANSE_RETURN_IF_ERROR(tx.Query(
      sql, params, {Column::kInt, Column::kInt, Column::kInt, Column::kInt, Column::kInt},
      [&](const Row& row) {
        pieces.push_back({row.Int(0), row.Int(1), row.Int(2), row.Int(3), row.Unsigned(4)});
      }));
  return pieces;
}

// The points of `data` from `before` on; nothing when it is damaged and has to stay as it is.
std::optional<Points> Remaining(const std::string& data, std::uint64_t count, std::int64_t before) {
  auto points = DecodeRow(data, count, "retention");
  if (!points) {
    base::LogError("series.corrupt", {{"during", "retention"}, {"error", points.error().message}});
    return std::nullopt;
  }
  const auto from =
      std::lower_bound(points->times.begin(), points->times.end(), before) - points->times.begin();
  return points->Slice(static_cast<std::size_t>(from), points->size());
}

base::Result<std::string> ReadData(sql::Transaction& tx, std::string_view sql, std::int64_t id) {
  std::string data;
  EXPANSE_RETURN_IF_ERROR(
      tx.Query(sql, {id}, {Column::kBytes}, [&](const Row& row) { data = row.Blob(0); }));
  return data;
}

// Returns how many points went.
base::Result<std::uint64_t> DropFromChunk(sql::Transaction& tx, const Piece& piece,
                                          std::int64_t before) {
  std::uint64_t gone = piece.count;
  if (piece.last < before) {
    EXPANSE_RETURN_IF_ERROR(tx.Execute("DELETE FROM chunk WHERE id = :id", {piece.id}));
  } else {
    EXPANSE_ASSIGN_OR_RETURN(const std::string data,
                             ReadData(tx, "SELECT data FROM chunk WHERE id = :id", piece.id));
    const auto rest = Remaining(data, piece.count, before);
    if (!rest || rest->empty()) return 0;
    gone = piece.count - rest->size();
    const std::string packed = PackChunk(*rest);
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("UPDATE chunk SET first = :first, count = :count, data = :data WHERE id = :id",
                   {rest->times.front(), rest->size(), Bytes{packed}, piece.id}));
  }
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("UPDATE series SET chunk_points = chunk_points - :gone WHERE id = :id",
                 {gone, piece.series_id}));
  return gone;
}

base::Result<std::uint64_t> DropFromTail(sql::Transaction& tx, const Piece& piece,
                                         std::int64_t before) {
  if (piece.last >= before) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string data,
                             ReadData(tx, "SELECT tail_data FROM series WHERE id = :id", piece.id));
    const auto rest = Remaining(data, piece.count, before);
    if (!rest || rest->empty()) return 0;
    const std::string tail = EmptyChunk() + EncodeSegment(*rest, /*pack=*/false);
    EXPANSE_RETURN_IF_ERROR(
        tx.Execute("UPDATE series SET tail_first = :first, tail_count = :count, tail_data = :data "
                   "WHERE id = :id",
                   {rest->times.front(), rest->size(), Bytes{tail}, piece.id}));
    return piece.count - rest->size();
  }
  // The tail is the newest: all chunks before it went earlier in the pass, but for a damaged one
  // that reaches past `before`. Then the series stays, with an empty tail.
  EXPANSE_ASSIGN_OR_RETURN(const std::int64_t removed,
                           tx.Execute("DELETE FROM series WHERE id = :id AND NOT EXISTS"
                                      " (SELECT 1 FROM chunk WHERE series_id = series.id)",
                                      {piece.id}));
  if (removed == 0) {
    EXPANSE_RETURN_IF_ERROR(tx.Execute(
        "UPDATE series SET tail_count = 0, tail_data = NULL WHERE id = :id", {piece.id}));
  }
  return piece.count;
}

}  // namespace

base::Result<RetentionPass::Progress> RetentionPass::Step(sql::Transaction& tx) {
  if (chunks_done_) return StepTails(tx);
  EXPANSE_ASSIGN_OR_RETURN(Progress progress, StepChunks(tx));
  if (std::exchange(progress.done, false)) {
    chunks_done_ = true;
    cursor_first_ = INT64_MIN;
    cursor_id_ = 0;
  }
  return progress;
}

base::Result<RetentionPass::Progress> RetentionPass::StepChunks(sql::Transaction& tx) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto pieces,
      ReadPieces(tx,
                 "SELECT id, series_id, first, last, count FROM chunk WHERE first < :before"
                 " AND (first, id) > (:first, :id) ORDER BY first, id LIMIT :limit",
                 {before_, cursor_first_, cursor_id_, kStepRows}));
  Progress progress{.dropped = 0, .done = pieces.size() < static_cast<std::size_t>(kStepRows)};
  for (const Piece& piece : pieces) {
    EXPANSE_ASSIGN_OR_RETURN(const std::uint64_t gone, DropFromChunk(tx, piece, before_));
    progress.dropped += gone;
    cursor_first_ = piece.first;
    cursor_id_ = piece.id;
  }
  return progress;
}

base::Result<RetentionPass::Progress> RetentionPass::StepTails(sql::Transaction& tx) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto pieces,
      ReadPieces(
          tx,
          "SELECT id, id, tail_first, tail_last, tail_count FROM series WHERE tail_first < :before"
          " AND (tail_first, id) > (:first, :id) ORDER BY tail_first, id LIMIT :limit",
          {before_, cursor_first_, cursor_id_, kStepRows}));
  Progress progress{.dropped = 0, .done = pieces.size() < static_cast<std::size_t>(kStepRows)};
  for (const Piece& piece : pieces) {
    EXPANSE_ASSIGN_OR_RETURN(const std::uint64_t gone, DropFromTail(tx, piece, before_));
    progress.dropped += gone;
    cursor_first_ = piece.first;
    cursor_id_ = piece.id;
  }
  return progress;
}

}  // namespace expanse::store::series
