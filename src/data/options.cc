#include "data/options.h"

namespace expanse::data {
namespace {

using base::SettingKind;
using base::SettingSpec;

constexpr double kDay = 86'400;

}  // namespace

std::vector<SettingSpec> DataSettings() {
  return {
      {.name = "data.max_batch_records",
       .kind = SettingKind::kInt,
       .default_value = "10000",
       .help = "Records that one ingest request may carry.",
       .min = 1,
       .max = 1e6},
      {.name = "data.max_batch_bytes",
       .kind = SettingKind::kBytes,
       .default_value = "32MiB",
       .help = "Size of one ingest request after decompression.",
       .min = 1 << 20,
       .max = 1 << 30},
      {.name = "data.records_per_second",
       .kind = SettingKind::kInt,
       .default_value = "2000",
       .help = "Records a second that one compute may send on average; 0 switches the bound off.",
       .min = 0,
       .max = 1e7},
      {.name = "data.samples_per_second",
       .kind = SettingKind::kInt,
       .default_value = "200000",
       .help =
           "Metric points a second that one compute may send on average; 0 switches the bound off.",
       .min = 0,
       .max = 1e9},
      {.name = "data.exchanges_per_second",
       .kind = SettingKind::kInt,
       .default_value = "20",
       .help = "Install tokens a second that are looked at, of all callers together; 0 switches "
               "the bound off.",
       .min = 0,
       .max = 1e5},
      {.name = "data.max_response_points",
       .kind = SettingKind::kInt,
       .default_value = "500000",
       .help = "Points that one metric query may return over all its series.",
       .min = 1000,
       .max = 1e7},
      {.name = "data.max_response_bytes",
       .kind = SettingKind::kBytes,
       .default_value = "16MiB",
       .help = "Size at which a page of executions ends early.",
       .min = 1 << 20,
       .max = 1 << 28},
      {.name = "data.health_interval",
       .kind = SettingKind::kDuration,
       .default_value = "30s",
       .help = "How often daemons report the health of their collectors.",
       .min = 1,
       .max = 3600},
      {.name = "data.keep_executions",
       .kind = SettingKind::kDuration,
       .default_value = "400d",
       .help = "How long executions, log tails and sources are kept after the end of a run; 0 "
               "keeps them for ever.",
       .min = 0,
       .max = 36500 * kDay},
      {.name = "data.keep_samples",
       .kind = SettingKind::kDuration,
       .default_value = "90d",
       .help = "How long metric points are kept; 0 keeps them for ever.",
       .min = 0,
       .max = 36500 * kDay},
      {.name = "data.keep_loose_blobs",
       .kind = SettingKind::kDuration,
       .default_value = "1d",
       .help = "How long stored bytes that no record names are kept; half as long again passes "
               "until they are "
               "found.",
       .min = 3600,
       .max = 365 * kDay},
      {.name = "data.retention_interval",
       .kind = SettingKind::kDuration,
       .default_value = "1h",
       .help = "How often evidence past its time is removed.",
       .min = 10,
       .max = 30 * kDay},
  };
}

DataOptions DataOptionsFrom(const base::Settings& settings) {
  DataOptions options;
  options.max_batch_records = static_cast<std::size_t>(settings.GetInt("data.max_batch_records"));
  options.max_batch_bytes = settings.GetBytes("data.max_batch_bytes").count;
  options.records_per_second = static_cast<double>(settings.GetInt("data.records_per_second"));
  options.samples_per_second = static_cast<double>(settings.GetInt("data.samples_per_second"));
  options.exchanges_per_second = static_cast<double>(settings.GetInt("data.exchanges_per_second"));
  options.max_response_points =
      static_cast<std::size_t>(settings.GetInt("data.max_response_points"));
  options.max_response_bytes = settings.GetBytes("data.max_response_bytes").count;
  options.health_interval = settings.GetDuration("data.health_interval");
  options.keep_executions = settings.GetDuration("data.keep_executions");
  options.keep_samples = settings.GetDuration("data.keep_samples");
  options.keep_loose_blobs = settings.GetDuration("data.keep_loose_blobs");
  options.retention_interval = settings.GetDuration("data.retention_interval");
  return options;
}

}  // namespace expanse::data
