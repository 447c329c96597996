#include "cli/metrics_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/bytes.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/render.h"

namespace expanse::cli {
namespace {

std::string CsvText(const std::string& text) {
  const std::string safe = base::EscapeForDisplay(text);
  if (safe.find_first_of(",\"") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (char c : safe) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string Number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

std::string ShowNumber(double value, const std::string& unit, bool human) {
  if (!std::isfinite(value)) return {};
  if (!human) return Number(value);
  if (unit == "bytes" && value >= 0)
    return base::FormatBytes({static_cast<std::uint64_t>(std::llround(value))});
  std::string text = fmt::format("{:.2f}", value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

struct Summary {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double samples = 0;
  double last = std::numeric_limits<double>::quiet_NaN();
};

Summary Summarise(const data::v1::MetricSeries& series) {
  Summary summary;
  for (const auto& point : series.points()) {
    const auto count = static_cast<double>(std::max<std::uint64_t>(point.sample_count(), 1));
    summary.min = std::min(summary.min, point.min());
    summary.max = std::max(summary.max, point.max());
    summary.sum += point.avg() * count;
    summary.samples += count;
    summary.last = point.value();
  }
  return summary;
}

std::string GpuOf(const data::v1::SeriesInfo& info) {
  return info.has_gpu_index() ? std::to_string(info.gpu_index()) : std::string();
}

}  // namespace

std::string_view MetricCsvHeader() {
  return "timestamp,metric,source,gpu_index,gpu_uuid,value,min,max,avg,sample_count,unit\n";
}

std::string MetricCsvRows(const data::v1::MetricSeries& series) {
  const auto& info = series.info();
  const std::string labels =
      fmt::format("{},{},{},{}", CsvText(info.metric()), CsvText(info.source()), GpuOf(info),
                  CsvText(info.gpu_uuid()));
  const std::string unit = CsvText(info.unit());
  std::string rows;
  for (const auto& point : series.points()) {
    rows += fmt::format("{},{},{},{},{},{},{},{}\n",
                        base::FormatRfc3339(FromTimestamp(point.timestamp())), labels,
                        Number(point.value()), Number(point.min()), Number(point.max()),
                        Number(point.avg()), point.sample_count(), unit);
  }
  return rows;
}

std::string MetricSummary(const std::vector<data::v1::QueryMetricResponse>& responses,
                          const TableStyle& style, bool human) {
  std::set<std::string> nodes;
  bool attributed = false;
  for (const auto& response : responses) {
    for (const auto& series : response.series()) {
      nodes.insert(series.info().node());
      attributed |= !series.info().attribution().empty();
    }
  }
  std::vector<Column> columns = {{.header = "METRIC", .least = 12}, {.header = "SOURCE"}};
  if (nodes.size() > 1) columns.push_back({.header = "NODE", .least = 8});
  columns.push_back({.header = "GPU", .align = Align::kRight});
  if (attributed) columns.push_back({.header = "GPU USE", .optional = true});
  for (const char* header : {"POINTS", "MIN", "AVG", "MAX", "LAST"}) {
    columns.push_back({.header = header, .align = Align::kRight});
  }
  columns.push_back({.header = "UNIT"});
  Table table(std::move(columns));
  for (const auto& response : responses) {
    for (const auto& series : response.series()) {
      const auto& info = series.info();
      const Summary summary = Summarise(series);
      std::vector<Cell> row = {info.metric(), info.source()};
      if (nodes.size() > 1) row.emplace_back(info.node());
      row.emplace_back(GpuOf(info));
      if (attributed) row.emplace_back(info.attribution());
      row.emplace_back(std::to_string(series.points_size()));
      const double mean = summary.samples > 0 ? summary.sum / summary.samples : std::nan("");
      for (double value : {summary.min, mean, summary.max, summary.last}) {
        row.emplace_back(ShowNumber(value, info.unit(), human));
      }
      row.emplace_back(info.unit());
      table.Add(std::move(row));
    }
  }
  return table.Render(style);
}

}  // namespace expanse::cli
