#include "data/series_batch.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace expanse::data {

void SeriesBatch::Add(std::string_view scope, const evidence::SampleBatch& batch) {
  if (batch.times.empty()) return;
  for (const evidence::SeriesColumn& column : batch.columns) {
    const std::int64_t gpu = column.gpu_index ? static_cast<std::int64_t>(*column.gpu_index) : -1;
    series_[{scope, column.metric, column.source, column.node, gpu, column.gpu_uuid}].push_back(
        {&batch, &column});
  }
}

void SeriesBatch::Merge(const std::vector<Piece>& pieces, Points* out) {
  // The second is the place in the stream, which orders points of equal time.
  std::vector<std::tuple<base::WallTime, std::size_t, double>> points;
  for (const Piece& piece : pieces) {
    for (std::size_t i = 0; i < piece.batch->times.size(); ++i) {
      const double value = piece.column->values[i];
      if (!std::isnan(value)) points.emplace_back(piece.batch->times[i], points.size(), value);
    }
  }
  if (!std::is_sorted(points.begin(), points.end())) std::sort(points.begin(), points.end());
  out->times.reserve(points.size());
  out->values.reserve(points.size());
  for (const auto& [time, place, value] : points) {
    out->times.push_back(time);
    out->values.push_back(value);
  }
}

std::vector<store::SeriesAppend> SeriesBatch::Appends() {
  std::vector<store::SeriesAppend> appends;
  appends.reserve(series_.size());
  merged_.clear();
  merged_.reserve(series_.size());  // spans point into its elements
  for (const auto& [name, pieces] : series_) {
    const evidence::SeriesColumn& last = *pieces.back().column;
    store::SeriesAppend append{.key = {.compute_id = std::string(compute_id_),
                                       .scope = std::string(std::get<0>(name)),
                                       .metric = last.metric,
                                       .source = last.source,
                                       .node = last.node,
                                       .gpu_index = last.gpu_index,
                                       .gpu_uuid = last.gpu_uuid},
                               .unit = last.unit,
                               .attribution = last.attribution,
                               .times = {},
                               .values = {}};
    const std::vector<base::WallTime>& times = pieces.front().batch->times;
    if (pieces.size() == 1 && std::is_sorted(times.begin(), times.end())) {
      append.times = times;
      append.values = last.values;
    } else {
      Merge(pieces, &merged_.emplace_back());
      append.times = merged_.back().times;
      append.values = merged_.back().values;
    }
    appends.push_back(std::move(append));
  }
  return appends;
}

}  // namespace expanse::data
