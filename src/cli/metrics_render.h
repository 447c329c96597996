// Metric series as a summary table or long-format CSV. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/table.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::cli {

// "timestamp,metric,source,gpu_index,gpu_uuid,value,min,max,avg,sample_count,unit\n".
std::string_view MetricCsvHeader();
// One row per point (RFC 4180, RFC 3339 times); numbers so that they are read back unchanged.
std::string MetricCsvRows(const data::v1::MetricSeries& series);

// One line per series: points, extremes, the mean weighted by samples, the last value. `human`
// shows bytes as "1.5 GiB" and rounds; else numbers are exact.
std::string MetricSummary(const std::vector<data::v1::QueryMetricResponse>& responses,
                          const TableStyle& style, bool human);

}  // namespace expanse::cli
