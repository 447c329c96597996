// metrics.
#include <fmt/format.h>

#include <set>

#include "base/crypto.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/lookup.h"
#include "cli/metrics_render.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"

namespace expanse::cli {
namespace {

using data::v1::QueryMetricRequest;
using data::v1::QueryMetricResponse;

constexpr std::string_view kAggregations[] = {"avg", "min", "max", "sum", "p95", "last"};
constexpr std::string_view kMetrics[] = {"gpu-util",  "gpu-memory-used", "gpu-memory-total",
                                         "gpu-power", "gpu-temp",        "gpu-clock",
                                         "cpu",       "memory"};

constexpr PositionalSpec kPositionals[] = {
    {.name = "EXECUTION", .help = "Execution id; not with --job", .required = false},
    {.name = "METRIC",
     .help = "gpu-util, gpu-memory-used, gpu-memory-total, gpu-power, gpu-temp, gpu-clock, cpu, "
             "memory, or any "
             "other name as its source spells it",
     .required = false,
     .repeated = true},
};
constexpr OptionSpec kOptions[] = {
    {.name = "csv", .kind = ValueKind::kFlag, .help = "Long-format CSV, one row per point"},
    {.name = "json", .kind = ValueKind::kFlag, .help = "The API's JSON, one document per metric"},
    {.name = "interval",
     .kind = ValueKind::kDuration,
     .value_name = "DURATION",
     .help = "Width of aggregation buckets in whole seconds, such as 5s or 1m",
     .default_text = "raw points",
     .min = 1000},
    {.name = "agg",
     .kind = ValueKind::kChoice,
     .value_name = "AGG",
     .help = "What a bucket's value is",
     .default_text = "avg",
     .choices = kAggregations},
    {.name = "since",
     .kind = ValueKind::kDuration,
     .value_name = "DURATION",
     .help = "Only the last 2h, 30m, …",
     .min = 1},
    {.name = "from",
     .kind = ValueKind::kTime,
     .value_name = "TIME",
     .help = "Start of the window (RFC 3339)"},
    {.name = "to",
     .kind = ValueKind::kTime,
     .value_name = "TIME",
     .help = "End of the window (RFC 3339)"},
    {.name = "gpu",
     .kind = ValueKind::kInt,
     .value_name = "INDEX",
     .help = "Only this GPU",
     .min = 0,
     .max = 65'535},
    {.name = "allow-fallback",
     .kind = ValueKind::kFlag,
     .help =
         "Take the compute's own series where the execution has none; they may include other jobs"},
    {.name = "cupti", .kind = ValueKind::kFlag, .help = "Only CUPTI PM sampling series"},
    {.name = "dcgm", .kind = ValueKind::kFlag, .help = "Only DCGM series"},
    {.name = "all",
     .kind = ValueKind::kFlag,
     .help = "Every metric of the source; with --cupti or --dcgm"},
    {.name = "job",
     .kind = ValueKind::kText,
     .value_name = "JOB_ID",
     .help = "The newest execution with this scheduler's job id"},
    {.name = "source-type",
     .kind = ValueKind::kChoice,
     .value_name = "TYPE",
     .help = "Which scheduler --job is of",
     .choices = kSourceTypes},
    {.name = "max-points",
     .kind = ValueKind::kInt,
     .value_name = "N",
     .help = "At most this many points per series",
     .default_text = "5000",
     .min = 1,
     .max = 100'000},
};
constexpr ExampleSpec kExamples[] = {
    {"expanse metrics 0191e7a0-5c1f-8d2e-9b3a-2f60c4d1e8aa cpu memory", "a summary"},
    {"expanse metrics 0191e7a0-5c1f-8d2e-9b3a-2f60c4d1e8aa gpu-util --csv > gpu.csv",
     "every point"},
    {"expanse metrics 0191e7a0-5c1f-8d2e-9b3a-2f60c4d1e8aa memory --interval 30s --agg max",
     "buckets"},
    {"expanse metrics --job 41982 --source-type slurm gpu-util", "by job id"},
    {"expanse metrics 0191e7a0-5c1f-8d2e-9b3a-2f60c4d1e8aa --dcgm --all --csv",
     "every DCGM counter"},
};

struct Asked {
  ExecutionChoice execution;
  std::vector<std::string> metrics;
  std::string source;
};

std::expected<Asked, Failure> WhatIsAsked(const Arguments& arguments) {
  Asked asked;
  asked.metrics = arguments.positionals();
  if (arguments.Has("job")) {
    asked.execution.id_or_native = arguments.Text("job");
    if (arguments.Has("source-type"))
      asked.execution.source_type = *ParseSourceType(arguments.Text("source-type"));
  } else {
    if (arguments.Has("source-type")) {
      return FailUsage("metrics: --source-type says which scheduler --job is of",
                       "expanse metrics --job JOB_ID …");
    }
    if (asked.metrics.empty())
      return FailUsage("metrics: EXECUTION is missing", "expanse executions");
    asked.execution.id_or_native = asked.metrics.front();
    asked.metrics.erase(asked.metrics.begin());
    if (!base::IsUuid(asked.execution.id_or_native)) {
      const std::string shown = base::EscapeForDisplay(asked.execution.id_or_native);
      const bool job = base::IsDigit(asked.execution.id_or_native.front());
      return FailUsage(
          fmt::format("metrics: '{}' is not an execution id", shown),
          job ? fmt::format("expanse metrics --job {} …", shown) : "expanse executions");
    }
  }
  const bool cupti = arguments.Flag("cupti");
  const bool dcgm = arguments.Flag("dcgm");
  const bool all = arguments.Flag("all");
  if (cupti && dcgm)
    return FailUsage("metrics: --cupti and --dcgm exclude each other", "pass one of them");
  if (all && !cupti && !dcgm)
    return FailUsage("metrics: --all needs a source", "add --dcgm or --cupti");
  if (all && !asked.metrics.empty())
    return FailUsage("metrics: --all takes no metric names", "leave them out");
  if (!all && asked.metrics.empty()) {
    return FailUsage("metrics: METRIC is missing",
                     fmt::format("one of {}", fmt::join(kMetrics, ", ")));
  }
  asked.source = cupti ? "cupti" : dcgm ? "dcgm" : "";
  return asked;
}

data::v1::Aggregation AggregationOf(const std::string& name) {
  data::v1::Aggregation aggregation = data::v1::AGGREGATION_AVG;
  std::string upper = "AGGREGATION_";
  for (char c : name) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  (void)data::v1::Aggregation_Parse(upper, &aggregation);
  return aggregation;
}

// Everything but the metric and the execution.
std::expected<QueryMetricRequest, Failure> BuildRequest(const App& app,
                                                        const Arguments& arguments) {
  QueryMetricRequest request;
  if (arguments.Has("since") && (arguments.Has("from") || arguments.Has("to"))) {
    return FailUsage("metrics: --since excludes --from and --to", "pass either");
  }
  if (arguments.Has("since")) {
    ToTimestamp(app.clock.Now() - arguments.Duration("since"), request.mutable_from());
  }
  if (arguments.Has("from") && arguments.Has("to") &&
      arguments.Time("from") >= arguments.Time("to")) {
    return FailUsage("metrics: --from must be before --to", "expanse metrics --help");
  }
  if (arguments.Has("from")) ToTimestamp(arguments.Time("from"), request.mutable_from());
  if (arguments.Has("to")) ToTimestamp(arguments.Time("to"), request.mutable_to());
  if (arguments.Has("interval")) {
    const auto interval = arguments.Duration("interval");
    if (interval % std::chrono::seconds(1) != std::chrono::milliseconds(0)) {
      return FailUsage(
          fmt::format("metrics: --interval {} is not in whole seconds", arguments.Text("interval")),
          "--interval 5s");
    }
    request.mutable_interval()->set_seconds(interval / std::chrono::seconds(1));
  }
  request.set_aggregation(AggregationOf(arguments.Text("agg", "avg")));
  if (arguments.Has("gpu"))
    request.set_gpu_index(static_cast<std::uint32_t>(arguments.Int("gpu", 0)));
  request.set_max_points(static_cast<std::uint32_t>(arguments.Int("max-points", 5000)));
  request.set_allow_fallback(arguments.Flag("allow-fallback"));
  return request;
}

base::Result<std::vector<std::string>> Discover(Planes& planes, const std::string& execution_id,
                                                const std::string& source) {
  data::v1::ListMetricsRequest request;
  request.set_execution_id(execution_id);
  request.set_source(source);
  EXPANSE_ASSIGN_OR_RETURN(const auto response,
                           planes.Data<data::v1::ListMetricsResponse>(
                               "expanse.data.v1.QueryService.ListMetrics", request));
  std::set<std::string> names;
  for (const auto& series : response.series()) names.insert(series.metric());
  return std::vector<std::string>(names.begin(), names.end());
}

void WarnAbout(App& app, const std::string& metric, const QueryMetricResponse& response,
               bool fallback_allowed) {
  bool truncated = false;
  bool fallback = false;
  bool points = false;
  for (const auto& series : response.series()) {
    truncated |= series.truncated();
    fallback |= series.fallback();
    points |= !series.points().empty();
  }
  if (!points) {
    const std::vector<std::string> known(std::begin(kMetrics), std::end(kMetrics));
    const auto nearest = base::NearestWord(metric, known);
    std::string hint =
        fallback_allowed ? "" : "; --allow-fallback looks at the compute's own series";
    if (nearest && *nearest != metric) hint = fmt::format("; did you mean '{}'?", *nearest);
    Warn(app, fmt::format("no points of '{}' in this window{}", metric, hint));
  }
  if (truncated) {
    Warn(app,
         fmt::format("'{}' has more points than --max-points; a wider --interval shows them all",
                     metric));
  }
  if (fallback)
    Warn(app, fmt::format("'{}' is the compute's own series and may include other jobs", metric));
}

base::Status Print(App& app, const Arguments& arguments,
                   const std::vector<QueryMetricResponse>& responses) {
  if (arguments.Flag("json")) {
    for (const auto& response : responses) {
      EXPANSE_ASSIGN_OR_RETURN(const std::string json, ToJson(response));
      app.terminal.Out(json);
    }
  } else if (arguments.Flag("csv")) {
    app.terminal.Out(MetricCsvHeader());
    for (const auto& response : responses) {
      for (const auto& series : response.series()) app.terminal.Out(MetricCsvRows(series));
    }
  } else {
    app.terminal.Out(MetricSummary(responses, StyleOf(app), app.terminal.OutIsTerminal()));
  }
  return {};
}

CommandResult Metrics(App& app, const Arguments& arguments) {
  if (arguments.Flag("csv") && arguments.Flag("json")) {
    return FailUsage("metrics: --csv and --json exclude each other", "pass one of them");
  }
  EXPANSE_ASSIGN_OR_RETURN(Asked asked, WhatIsAsked(arguments));
  EXPANSE_ASSIGN_OR_RETURN(QueryMetricRequest request, BuildRequest(app, arguments));
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("metrics"));
  auto id = ResolveExecution(*planes, asked.execution);
  if (!id) return std::unexpected(std::move(id).error().With("metrics"));
  request.set_execution_id(*id);
  request.set_source(asked.source);
  if (arguments.Flag("all")) {
    auto names = Discover(*planes, *id, asked.source);
    if (!names) return std::unexpected(std::move(names).error().With("metrics"));
    asked.metrics = std::move(*names);
    if (asked.metrics.empty())
      Warn(app, fmt::format("the execution has no {} series", asked.source));
  }
  std::vector<QueryMetricResponse> responses;
  for (const std::string& metric : asked.metrics) {
    request.set_metric(metric);
    auto response =
        planes->Data<QueryMetricResponse>("expanse.data.v1.QueryService.QueryMetric", request);
    if (!response) return std::unexpected(std::move(response).error().With("metrics: " + metric));
    WarnAbout(app, metric, *response, arguments.Flag("allow-fallback"));
    responses.push_back(std::move(*response));
  }
  EXPANSE_RETURN_IF_ERROR(Print(app, arguments, responses));
  return 0;
}

}  // namespace

constinit const CommandSpec kMetricsCommand = {
    .name = "metrics",
    .summary = "Export an execution's metrics as a summary, CSV or JSON",
    .description =
        "Without --interval points are as they were sampled; with it each bucket has a value, "
        "minimum, maximum, "
        "mean and number of samples. Warnings go to standard error, so piped data stays clean.\n\n"
        "CSV columns: "
        "timestamp,metric,source,gpu_index,gpu_uuid,value,min,max,avg,sample_count,unit",
    .options = kOptions,
    .positionals = kPositionals,
    .examples = kExamples,
    .run = Metrics};

}  // namespace expanse::cli
