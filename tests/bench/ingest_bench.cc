// How fast one data plane takes evidence: DataPlane's ingest on the embedded stores, in-process,
// from the serialized request to the acknowledgement. Per core means per second of CPU that the
// process used, syncs to disk not counted; the rates per second of wall time count them.
//   ingest_bench --batches 200 --records 60 --series 200 --computes 4 --threads 2
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/crypto.h"
#include "base/files.h"
#include "base/log.h"
#include "base/time.h"
#include "bench/bench_report.h"
#include "data/data_plane.h"
#include "evidence/wire.h"
#include "expanse/data/v1/ingest_service.pb.h"
#include "store/blobs/directory_blob_store.h"
#include "store/records/sqlite_evidence_store.h"
#include "store/series/sqlite_series_store.h"

namespace {

using namespace expanse;
using std::chrono::seconds;

struct Sizes {
  int batches = 100;  // per compute and phase
  int records = 60;   // per batch
  int series = 50;    // per sample record
  int points = 1;     // per series and sample record
  int computes = 2;
  int threads = 1;
  int executions = 20;  // running at once, per compute
  int tail_bytes = 4096;
  std::string directory;
};

class NoControl final : public data::ControlClient {
 public:
  base::Result<data::InstalledCompute> BurnInstallToken(std::string_view,
                                                        evidence::SourceType) override {
    return base::Fail(base::Code::kUnavailable, "bench", "no control plane here");
  }
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

evidence::ExecutionKey KeyOf(int number) {
  return {evidence::SourceType::kHost, "bench-" + std::to_string(number)};
}

evidence::Payload Samples(const Sizes& sizes, int number, base::WallTime at) {
  evidence::SampleBatch batch;
  batch.key = KeyOf(number % sizes.executions);
  for (int i = 0; i < sizes.points; ++i) batch.times.push_back(at + std::chrono::milliseconds(i));
  for (int s = 0; s < sizes.series; ++s) {
    evidence::SeriesColumn& column = batch.columns.emplace_back();
    column.metric = "metric-" + std::to_string(s);
    column.source = "cgroup";
    column.node = "node-1";
    column.unit = "bytes";
    // A gauge that moves a little, as most do.
    for (int i = 0; i < sizes.points; ++i)
      column.values.push_back(1e9 + 4096.0 * ((number * 7 + s * 13 + i) % 100));
  }
  return batch;
}

evidence::Payload Run(const Sizes&, int number, base::WallTime at) {
  evidence::ExecutionObservation seen{.key = KeyOf(number), .execution = {}};
  seen.execution.native_id = std::to_string(number);
  seen.execution.name = "train";
  seen.execution.user = "user" + std::to_string(number % 50);
  seen.execution.command = {"python3", "train.py", "--epochs", "10"};
  seen.execution.working_directory = "/home/user/project";
  seen.execution.status = evidence::ExecutionStatus::kRunning;
  seen.execution.started_at = at;
  seen.execution.requested = {.cpu_cores = 8, .memory_bytes = 1ULL << 34};
  return seen;
}

evidence::Payload Tail(const Sizes& sizes, int number, base::WallTime) {
  evidence::LogTail tail{.key = KeyOf(number % sizes.executions), .stream = "stdout", .data = {}};
  while (tail.data.size() < static_cast<std::size_t>(sizes.tail_bytes))
    tail.data += "step " + std::to_string(number) + " loss 0.1\n";
  tail.total_bytes = tail.data.size();
  return tail;
}

using Make = evidence::Payload (*)(const Sizes&, int number, base::WallTime at);

struct Traffic {
  std::string compute;
  std::vector<std::string> requests;  // serialized, in stream order
};

Traffic MakeTraffic(const Sizes& sizes, Make make, int compute, base::WallTime start) {
  Traffic traffic{.compute = "compute-" + std::to_string(compute), .requests = {}};
  data::v1::IngestRequest request;
  request.set_stream_id(base::NewUuid(start));
  std::uint64_t sequence = 0;
  for (int b = 0; b < sizes.batches; ++b) {
    request.clear_records();
    for (int r = 0; r < sizes.records; ++r) {
      const int number = b * sizes.records + r;
      const base::WallTime at = start + std::chrono::milliseconds(100) * number;
      evidence::ToProto(
          {.sequence = ++sequence, .observed_at = at, .payload = make(sizes, number, at)},
          request.add_records());
    }
    traffic.requests.push_back(request.SerializeAsString());
  }
  return traffic;
}

bool Send(data::DataPlane& plane, const Traffic& traffic, std::vector<double>* latencies) {
  net::CallContext context;
  context.caller = {
      .kind = net::CallerKind::kCompute, .subject = traffic.compute, .organisation_id = "org"};
  for (const std::string& bytes : traffic.requests) {
    const auto begun = std::chrono::steady_clock::now();
    data::v1::IngestRequest request;
    if (!request.ParseFromString(bytes)) return false;
    const auto response = plane.ingest().Apply(context, request);
    if (!response || response->rejected_size() > 0) {
      fmt::print(stderr, "ingest_bench: {}\n",
                 response ? response->rejected(0).message() : response.error().message);
      return false;
    }
    latencies->push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
            .count());
  }
  return true;
}

bool Phase(data::DataPlane& plane, const Sizes& sizes, const std::string& name, Make make,
           double points_per_record, bench::Report* report) {
  const base::WallTime start = base::SystemClock().Now() - std::chrono::hours(1);
  std::vector<Traffic> all;
  for (int c = 0; c < sizes.computes; ++c) all.push_back(MakeTraffic(sizes, make, c, start));
  std::vector<std::vector<double>> latencies(static_cast<std::size_t>(sizes.computes));
  std::atomic<int> next{0};
  std::atomic<bool> good{true};
  const double cpu = CpuSeconds();
  const auto begun = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < sizes.threads; ++t) {
      threads.emplace_back([&] {
        for (int c = next++; c < sizes.computes; c = next++) {
          const auto i = static_cast<std::size_t>(c);
          if (!Send(plane, all[i], &latencies[i])) good = false;
        }
      });
    }
  }
  const double cpu_s = CpuSeconds() - cpu;
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::vector<double> together;
  for (const auto& some : latencies) together.insert(together.end(), some.begin(), some.end());
  const double records = static_cast<double>(sizes.batches) * sizes.records * sizes.computes;
  report->Add(name + ", records per core", records / cpu_s, "1/s");
  report->Add(name + ", records per wall second", records / wall_s, "1/s");
  if (points_per_record > 0) {
    report->Add(name + ", points per core", records * points_per_record / cpu_s, "1/s");
    report->Add(name + ", points per wall second", records * points_per_record / wall_s, "1/s");
  }
  report->Add(name + ", batch median", bench::Quantile(together, 0.5), "ms");
  report->Add(name + ", batch p99", bench::Quantile(together, 0.99), "ms");
  return good;
}

int Bench(const Sizes& sizes) {
  auto temporary = base::TempDir::Create("ingest_bench");
  if (!temporary) return 1;
  const std::string directory = sizes.directory.empty() ? temporary->path() : sizes.directory;
  base::SystemClock clock;
  base::MetricRegistry metrics;
  NoControl control;
  auto records = store::SqliteEvidenceStore::Open({.path = directory + "/records.db"}, clock);
  auto series = store::SqliteSeriesStore::Open({.path = directory + "/series.db"});
  auto blobs = store::DirectoryBlobStore::Open(directory + "/blobs", clock);
  if (!records || !series || !blobs) {
    fmt::print(stderr, "ingest_bench: no stores in {}\n", directory);
    return 1;
  }
  auto plane = data::DataPlane::Create({.records_per_second = 0, .samples_per_second = 0},
                                       **records, **series, **blobs, control, clock, metrics);
  if (!plane) return 1;
  bench::Report report("ingest");
  bool good = Phase(**plane, sizes, "samples", Samples,
                    static_cast<double>(sizes.series) * sizes.points, &report);
  good = Phase(**plane, sizes, "executions", Run, 0, &report) && good;
  good = Phase(**plane, sizes, "log tails", Tail, 0, &report) && good;
  report.Print();
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Sizes sizes;
  CLI::App app("Ingest rate of the data plane on its embedded stores");
  app.add_option("--batches", sizes.batches, "batches per compute")->check(CLI::PositiveNumber);
  app.add_option("--records", sizes.records, "records per batch")->check(CLI::PositiveNumber);
  app.add_option("--series", sizes.series, "series per sample record")->check(CLI::PositiveNumber);
  app.add_option("--points", sizes.points, "points per series and sample record")
      ->check(CLI::PositiveNumber);
  app.add_option("--computes", sizes.computes, "computes that send")->check(CLI::PositiveNumber);
  app.add_option("--threads", sizes.threads, "computes that send at once")
      ->check(CLI::PositiveNumber);
  app.add_option("--executions", sizes.executions, "executions that run at once per compute")
      ->check(CLI::PositiveNumber);
  app.add_option("--tail-bytes", sizes.tail_bytes, "bytes per log tail")
      ->check(CLI::PositiveNumber);
  app.add_option("--dir", sizes.directory,
                 "where the stores are made; empty: a temporary directory");
  CLI11_PARSE(app, argc, argv);
  return Bench(sizes);
}
