// The daemon's way out: records appended per second (lifecycle durable one by one, from several
// threads at once, samples lazily) and uploaded per second to a sink in this process, over a real
// directory.
//   daemon_bench [--directory DIR] [--records N] [--batches N] [--threads N]
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/compress.h"
#include "base/files.h"
#include "base/log.h"
#include "bench/bench_report.h"
#include "daemon/outboxes.h"
#include "daemon/uploader.h"

namespace {

using namespace expanse;
using namespace std::chrono_literals;

// Takes everything, after what a real client would do to the bytes.
class Sink final : public daemon::Planes {
 public:
  base::Result<control::v1::MintComputeTokenResponse> MintComputeToken(
      const control::v1::MintComputeTokenRequest&, std::chrono::milliseconds) override {
    return control::v1::MintComputeTokenResponse();
  }
  base::Result<control::v1::HeartbeatResponse> Heartbeat(const std::string&,
                                                         const control::v1::HeartbeatRequest&,
                                                         std::chrono::milliseconds) override {
    return control::v1::HeartbeatResponse();
  }
  base::Result<data::v1::IngestResponse> Ingest(const std::string&,
                                                const data::v1::IngestRequest& request,
                                                std::chrono::milliseconds) override {
    const std::string bytes = request.SerializeAsString();
    plain_bytes += bytes.size();
    sent_bytes += base::ZstdCompress(bytes).size();
    records += std::size_t(request.records_size());
    data::v1::IngestResponse response;
    response.set_watermark(request.records(request.records_size() - 1).sequence());
    return response;
  }
  base::Result<data::v1::ReportHealthResponse> ReportHealth(const std::string&,
                                                            const data::v1::ReportHealthRequest&,
                                                            std::chrono::milliseconds) override {
    return data::v1::ReportHealthResponse();
  }
  base::Result<data::v1::ReportClusterStateResponse> ReportClusterState(
      const std::string&, const data::v1::ReportClusterStateRequest&,
      std::chrono::milliseconds) override {
    return data::v1::ReportClusterStateResponse();
  }
  std::size_t records = 0;
  std::size_t plain_bytes = 0;
  std::size_t sent_bytes = 0;
};

evidence::Payload Execution(int number) {
  evidence::ExecutionObservation seen;
  seen.key = {evidence::SourceType::kHost, "bench-" + std::to_string(number)};
  seen.execution.native_id = seen.key.identity;
  seen.execution.name = "train.py";
  seen.execution.user = "someone";
  seen.execution.command = {"python3", "train.py", "--epochs", "30"};
  seen.execution.working_directory = "/home/someone/project";
  seen.execution.status = evidence::ExecutionStatus::kRunning;
  seen.execution.started_at = base::WallTime(1'800'000'000s);
  return seen;
}

// 20 series of two times each: what a workload gives every 20 seconds.
evidence::SampleBatch Samples(int number) {
  evidence::SampleBatch batch{.key = evidence::ExecutionKey{evidence::SourceType::kHost, "bench"}};
  batch.times = {base::WallTime(1'800'000'000s), base::WallTime(1'800'000'010s)};
  for (int i = 0; i < 20; ++i) {
    batch.columns.push_back({.metric = "metric-" + std::to_string(i),
                             .source = "cgroup",
                             .node = "node-1",
                             .unit = "bytes",
                             .values = {double(number * 1000 + i), double(number * 1003 + i)}});
  }
  return batch;
}

double Timed(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return base::ToSeconds(std::chrono::steady_clock::now() - begin);
}

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Appends to and uploads from the daemon's outbox.");
  std::string directory;
  int records = 500;
  int batches = 50'000;
  int threads = 8;
  app.add_option("--directory", directory, "On the disk to measure; default: a temporary one");
  app.add_option("--records", records, "Lifecycle records, each made durable");
  app.add_option("--batches", batches, "Batches of samples (40 points each)");
  app.add_option("--threads", threads, "That append lifecycle records at the same time");
  CLI11_PARSE(app, argc, argv);

  auto temp = base::TempDir::Create();
  if (!temp) return 1;
  if (directory.empty()) directory = temp->path() + "/outbox";
  base::ConfigureLog(base::LogLevel::kOff, base::LogFormat::kText);
  base::SystemClock clock;
  daemon::SystemFileIo files;
  auto outboxes =
      daemon::Outboxes::Open({.directory = directory, .max_bytes = 8ULL << 30}, files, clock);
  if (!outboxes) {
    std::fprintf(stderr, "daemon_bench: %s\n", outboxes.error().message.c_str());
    return 1;
  }
  bench::Report report("daemon");
  bool ok = true;
  auto emit = [&](int number) {
    ok = (*outboxes)->Emit(Execution(number), clock.Now()).has_value() && ok;
  };

  const double alone = Timed([&] {
    for (int i = 0; i < records; ++i) emit(i);
  });
  report.Add("lifecycle, one thread", records / alone, "records/s");
  report.Add("lifecycle, one thread", alone / records * 1e3, "ms/record");
  const double together = Timed([&] {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        for (int i = 0; i < records / threads; ++i) {
          if (!(*outboxes)->Emit(Execution(t * records + i), clock.Now())) std::abort();
        }
      });
    }
  });
  report.Add("lifecycle, " + std::to_string(threads) + " threads",
             records / threads * threads / together, "records/s");

  double cpu = CpuSeconds();
  const double lazily = Timed([&] {
    for (int i = 0; i < batches; ++i)
      ok = (*outboxes)->EmitSamples(Samples(i), clock.Now()).has_value() && ok;
    ok = (*outboxes)->Flush().has_value() && ok;
  });
  report.Add("samples", batches / lazily, "batches/s");
  report.Add("samples", batches * 40 / lazily, "points/s");
  report.Add("samples, CPU", (CpuSeconds() - cpu) / batches * 1e6, "us/batch");

  Sink sink;
  daemon::Session session(sink, {.compute_id = "bench"}, clock, [] {
    return base::Result<net::ComputeIdentity>(net::ComputeIdentity{});
  });
  daemon::Uploader uploader(**outboxes, session, clock, {});
  cpu = CpuSeconds();
  const double upload = Timed([&] {
    while (uploader.Step() == 0ms) {
    }
  });
  report.Add("upload", double(sink.records) / upload, "records/s");
  report.Add("upload", double(sink.plain_bytes) / upload / 1e6, "MB/s");
  report.Add("upload, CPU", (CpuSeconds() - cpu) / double(sink.records) * 1e6, "us/record");
  report.Add("upload, size", double(sink.plain_bytes) / double(sink.sent_bytes), "x by zstd");
  if (!ok) {
    std::fprintf(stderr, "daemon_bench: a record was not taken\n");
    return 1;
  }
  report.Print();
  return 0;
}
