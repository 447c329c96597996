// The tables of the embedded series store. Internal to store/series.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/series/chunk.h"
#include "store/sql/database.h"

namespace expanse::store::series {

// series     one row per series: identity, properties, and its open tail (the newest points)
// chunk      full, packed chunks; those of a series do not overlap and lie before its tail
// watermark  the highest sequence taken per (compute, stream)
std::span<const sql::Migration> SeriesMigrations();

// gpu_index of a series that belongs to no GPU.
inline constexpr std::int64_t kNoGpu = -1;

// Points of a chunk or tail; checks the count that its row gives. `what` names the series for
// people.
base::Result<Points> DecodeRow(std::string_view data, std::uint64_t count, std::string_view what);

}  // namespace expanse::store::series
