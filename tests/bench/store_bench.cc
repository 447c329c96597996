// How fast the embedded stores take and give: executions and samples ingested per second, bytes per
// sample on disk, latency of list pages and of aggregate queries. All on one thread; rates "per
// core" count processor time, so that a busy machine or a slow disk does not blur what the code
// costs.
//
//   store_bench [--executions 100000] [--nodes 32] [--metrics 20] [--minutes 30] [--batch 500]
//               [--points-per-append 10] [--queries 200] [--directory DIR]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/time.h"
#include "bench/bench_report.h"
#include "store/blobs/directory_blob_store.h"
#include "store/records/sqlite_evidence_store.h"
#include "store/series/sqlite_series_store.h"

namespace expanse {
namespace {

struct Sizes {
  std::size_t executions = 100'000;
  std::size_t batch = 500;  // executions per transaction
  std::size_t nodes = 32;
  std::size_t metrics = 20;  // per node
  std::size_t minutes = 30;  // of one sample per second
  std::size_t points_per_append = 10;
  std::size_t queries = 200;
  std::size_t blobs = 500;
  std::string directory;
};

using Steady = std::chrono::steady_clock;

double Since(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

double CpuSeconds() {
  struct timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Ends the program on an error: a bench with a failing store measures nothing.
template <typename T>
T Must(base::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "store_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

double Megabytes(const std::string& path) {
  std::error_code error;
  double bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    const auto size = std::filesystem::file_size(path + suffix, error);
    if (!error) bytes += static_cast<double>(size);
  }
  return bytes / 1e6;
}

evidence::Execution MakeExecution(std::size_t i, base::WallTime start) {
  static constexpr evidence::ExecutionStatus kStatuses[] = {
      evidence::ExecutionStatus::kSucceeded, evidence::ExecutionStatus::kSucceeded,
      evidence::ExecutionStatus::kFailed, evidence::ExecutionStatus::kRunning};
  evidence::Execution e;
  e.native_id = std::to_string(1000 + i);
  e.name = "train-" + std::to_string(i % 50);
  e.user = "user" + std::to_string(i % 200);
  e.account = "lab" + std::to_string(i % 20);
  e.queue = "gpu";
  e.working_directory = "/home/" + e.user + "/project";
  e.command = {"python3", "train.py", "--epochs", std::to_string(i % 30)};
  e.nodes = {"node" + std::to_string(i % 64)};
  e.status = kStatuses[i % 4];
  e.outcome = i % 4 == 2 ? evidence::Outcome::kOutOfMemory : evidence::Outcome::kSuccess;
  e.started_at = start + std::chrono::seconds(i * 7);
  if (e.status != evidence::ExecutionStatus::kRunning)
    e.ended_at = *e.started_at + std::chrono::minutes(20);
  e.requested = {.cpu_cores = 16, .memory_bytes = 64ULL << 30, .gpu_count = 4};
  e.used.cpu_s = 1000.5;
  e.used.memory_peak_bytes = 12ULL << 30;
  return e;
}

void IngestExecutions(store::EvidenceStore& records, const Sizes& sizes, base::WallTime start,
                      bench::Report& report) {
  std::vector<store::EvidenceChange> changes;
  std::vector<double> commits;
  double spent = 0;
  for (std::size_t i = 0; i < sizes.executions;) {
    changes.clear();
    for (; i < sizes.executions && changes.size() < sizes.batch; ++i) {
      changes.push_back({.sequence = i + 1,
                         .execution_id = "e" + std::to_string(i * 7919 % sizes.executions),
                         .source_type = evidence::SourceType::kSlurm,
                         .execution = MakeExecution(i, start)});
    }
    const double cpu = CpuSeconds();
    const auto begun = Steady::now();
    Must(records.Apply("org", "compute" + std::to_string(i % 3), "s", changes));
    commits.push_back(Since(begun) * 1e3);
    spent += CpuSeconds() - cpu;
  }
  report.Add("executions ingested per core", static_cast<double>(sizes.executions) / spent, "1/s");
  report.Add("ingest batch, median", bench::Quantile(commits, 0.5), "ms");
}

void ListPages(store::EvidenceStore& records, const Sizes& sizes, bench::Report& report) {
  const std::pair<const char*, store::ExecutionFilter> lists[] = {
      {"page of 50, no filter", {.organisation_id = "org"}},
      {"page of 50, one user", {.organisation_id = "org", .users = {"user7"}}},
      {"page of 50, five users",
       {.organisation_id = "org", .users = {"user1", "user2", "user3", "user4", "user5"}}},
      {"page of 50, failed on one compute",
       {.organisation_id = "org",
        .status = evidence::ExecutionStatus::kFailed,
        .compute_id = "compute1"}},
      {"page by native id", {.organisation_id = "org", .native_id = "1234"}},
  };
  for (const auto& [name, filter] : lists) {
    std::vector<double> times;
    std::optional<store::ExecutionCursor> after;
    for (std::size_t i = 0; i < sizes.queries;
         ++i) {  // page after page, from the start again at the end
      const auto begun = Steady::now();
      auto page = Must(records.List(filter, after, 50));
      times.push_back(Since(begun) * 1e3);
      after = page.next;
    }
    report.Add(std::string(name) + ", median", bench::Quantile(times, 0.5), "ms");
    report.Add(std::string(name) + ", p99", bench::Quantile(times, 0.99), "ms");
  }
}

// A plausible column: percentages with a little noise, or growing byte counters.
double SampleValue(std::size_t metric, std::size_t second, std::mt19937_64& random) {
  if (metric % 2 == 0) {
    return std::round(6000 + 3000 * std::sin(static_cast<double>(second) / 90) +
                      static_cast<double>(random() % 400)) /
           100;
  }
  return static_cast<double>((64ULL << 30) + second * 8192 * metric + (random() % 16) * 4096);
}

double IngestSamples(store::SeriesStore& series, const Sizes& sizes, base::WallTime start,
                     std::size_t per_append, const std::string& scope, bench::Report& report) {
  std::mt19937_64 random(1);
  const std::size_t seconds = sizes.minutes * 60;
  double spent = 0;
  std::uint64_t sequence = 0;
  std::vector<base::WallTime> times(per_append);
  std::vector<std::vector<double>> values(sizes.metrics, std::vector<double>(per_append));
  std::vector<store::SeriesAppend> appends(sizes.metrics);
  for (std::size_t at = 0; at + per_append <= seconds; at += per_append) {
    for (std::size_t node = 0; node < sizes.nodes; ++node) {
      for (std::size_t p = 0; p < per_append; ++p) {
        times[p] = start + std::chrono::seconds(at + p) + std::chrono::microseconds(random() % 300);
      }
      for (std::size_t m = 0; m < sizes.metrics; ++m) {
        for (std::size_t p = 0; p < per_append; ++p) values[m][p] = SampleValue(m, at + p, random);
        appends[m] = {.key = {.compute_id = "c",
                              .scope = scope,
                              .metric = "metric" + std::to_string(m),
                              .source = "host",
                              .node = "node" + std::to_string(node),
                              .gpu_index = {},
                              .gpu_uuid = ""},
                      .unit = "bytes",
                      .attribution = "",
                      .times = times,
                      .values = values[m]};
      }
      const double cpu = CpuSeconds();
      Must(series.Append({.compute_id = "c", .stream_id = scope, .sequence = ++sequence}, appends));
      spent += CpuSeconds() - cpu;
    }
  }
  const double samples = static_cast<double>(sequence * per_append * sizes.metrics);
  report.Add("samples ingested per core, " + std::to_string(per_append) + " per append",
             samples / spent, "1/s");
  return samples;
}

void QuerySamples(store::SeriesStore& series, const Sizes& sizes, base::WallTime start,
                  bench::Report& report) {
  store::SeriesQuery query{.compute_id = "c",
                           .scope = "execution",
                           .metric = "metric0",
                           .source = "",
                           .gpu_index = {},
                           .from = start,
                           .to = start + std::chrono::minutes(sizes.minutes),
                           .interval = std::chrono::seconds(60)};
  std::vector<double> times;
  double points = 0;
  double total = 0;
  for (std::size_t i = 0; i < sizes.queries; ++i) {
    query.metric = "metric" + std::to_string(i % sizes.metrics);
    const double cpu = CpuSeconds();
    const auto begun = Steady::now();
    const auto results = Must(series.Query(query));
    times.push_back(Since(begun) * 1e3);
    total += CpuSeconds() - cpu;
    for (const auto& result : results) points += static_cast<double>(result.info.point_count);
  }
  report.Add("aggregate one metric on all nodes, median", bench::Quantile(times, 0.5), "ms");
  report.Add("aggregate one metric on all nodes, p99", bench::Quantile(times, 0.99), "ms");
  report.Add("points aggregated per core", points / total, "1/s");
}

void Blobs(store::BlobStore& blobs, const Sizes& sizes, bench::Report& report) {
  std::string line;
  for (int i = 0; i < 400; ++i)
    line += "step " + std::to_string(i) + " loss 0.123 throughput 456 samples/s\n";
  const auto begun = Steady::now();
  for (std::size_t i = 0; i < sizes.blobs; ++i) Must(blobs.Put(std::to_string(i) + line));
  report.Add("log tails of 18 kB put", static_cast<double>(sizes.blobs) / Since(begun), "1/s");
}

int Main(int argc, char** argv) {
  Sizes sizes;
  CLI::App app("Throughput and latency of the embedded stores");
  app.add_option("--executions", sizes.executions, "Executions to ingest");
  app.add_option("--batch", sizes.batch, "Executions per transaction");
  app.add_option("--nodes", sizes.nodes, "Nodes that send samples");
  app.add_option("--metrics", sizes.metrics, "Series per node");
  app.add_option("--minutes", sizes.minutes, "Minutes of one sample per second");
  app.add_option("--points-per-append", sizes.points_per_append,
                 "Points that one append adds to a series");
  app.add_option("--queries", sizes.queries, "Queries of each kind");
  app.add_option("--blobs", sizes.blobs, "Log tails to put");
  app.add_option("--directory", sizes.directory,
                 "Where to put the stores (default: a temporary directory)");
  CLI11_PARSE(app, argc, argv);

  const base::TempDir temporary = Must(base::TempDir::Create("store_bench"));
  const std::string directory = sizes.directory.empty() ? temporary.path() : sizes.directory;
  base::SystemClock clock;
  const base::WallTime start(std::chrono::seconds(1'750'000'000));
  bench::Report report("store");

  const std::string records_path = base::JoinPath(directory, "records.db");
  auto records = Must(store::SqliteEvidenceStore::Open({.path = records_path}, clock));
  IngestExecutions(*records, sizes, start, report);
  report.Add("bytes per execution on disk",
             Megabytes(records_path) * 1e6 / static_cast<double>(sizes.executions), "B");
  ListPages(*records, sizes, report);

  const std::string series_path = base::JoinPath(directory, "series.db");
  {
    auto series = Must(store::SqliteSeriesStore::Open({.path = series_path}));
    const double samples =
        IngestSamples(*series, sizes, start, sizes.points_per_append, "execution", report);
    QuerySamples(*series, sizes, start, report);
    series.reset();  // writes the log back
    report.Add("bytes per sample on disk", Megabytes(series_path) * 1e6 / samples, "B");
  }
  {
    auto series = Must(
        store::SqliteSeriesStore::Open({.path = base::JoinPath(directory, "series-other.db")}));
    Sizes shorter = sizes;  // one transaction per second and node takes its time
    shorter.minutes = std::max<std::size_t>(sizes.minutes / 10, 1);
    IngestSamples(*series, shorter, start, 1, "one", report);
    IngestSamples(*series, sizes, start, 60, "sixty", report);
  }

  auto blobs = Must(store::DirectoryBlobStore::Open(base::JoinPath(directory, "blobs"), clock));
  Blobs(*blobs, sizes, report);
  report.Print();
  return 0;
}

}  // namespace
}  // namespace expanse

int main(int argc, char** argv) { return expanse::Main(argc, argv); }
