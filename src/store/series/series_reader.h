// Reads series inside a read transaction. Internal to store/series.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/series/series_store.h"
#include "store/sql/database.h"

namespace expanse::store::series {

base::Result<std::vector<SeriesInfo>> ListSeries(sql::Transaction& tx, std::string_view compute_id,
                                                 std::string_view scope, std::string_view source);
// Fails with series.corrupt when the window touches a damaged chunk.
base::Result<std::vector<SeriesResult>> QuerySeries(sql::Transaction& tx, const SeriesQuery& query);

}  // namespace expanse::store::series
