// Sample records of one ingest request, gathered into one append per series.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "evidence/records.h"
#include "store/series/series_store.h"

namespace expanse::data {

// Not thread-safe. Refers to the batches it was given: they outlive it, and so do the appends.
class SeriesBatch {
 public:
  explicit SeriesBatch(std::string_view compute_id) : compute_id_(compute_id) {}

  // In stream order: of points with equal time the last one counts. `scope` is an execution id or
  // empty.
  void Add(std::string_view scope, const evidence::SampleBatch& batch);
  // Times ascend in each. Valid until the next Add.
  std::vector<store::SeriesAppend> Appends();

 private:
  // What store::SeriesKey has besides the compute; -1 for no GPU index.
  using Name = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view,
                          std::int64_t, std::string_view>;
  struct Piece {
    const evidence::SampleBatch* batch;
    const evidence::SeriesColumn* column;
  };
  struct Points {
    std::vector<base::WallTime> times;
    std::vector<double> values;
  };
  static void Merge(const std::vector<Piece>& pieces, Points* out);

  const std::string_view compute_id_;
  std::map<Name, std::vector<Piece>> series_;
  std::vector<Points> merged_;
};

}  // namespace expanse::data
