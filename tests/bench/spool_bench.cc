// What the samplers' spool costs the controller: a look at many hosts that have nothing new, and
// draining what many hosts left, in points and segments a second of one core.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/files.h"
#include "base/log.h"
#include "base/time.h"
#include "bench/bench_report.h"
#include "daemon/file_io.h"
#include "daemon/outboxes.h"
#include "daemon/spool/segment_format.h"
#include "daemon/spool/spool_drain.h"
#include "evidence/wire.h"

namespace {

using namespace expanse;
using namespace expanse::daemon;
using namespace expanse::daemon::spool;

class Resolver final : public schedulers::KeyResolver {
 public:
  std::optional<evidence::ExecutionKey> Resolve(const evidence::ExecutionKey& local, base::WallTime,
                                                std::string_view) override {
    return evidence::ExecutionKey{.source_type = evidence::SourceType::kSlurm,
                                  .identity = "bench/" + local.identity.substr(4) + "@1"};
  }
};

double CpuSeconds() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What a node with four jobs measures in ten seconds: a row of each series.
std::vector<std::string> Records(base::WallTime at, std::uint64_t* points) {
  std::vector<std::string> records;
  for (int scope = 0; scope < 5; ++scope) {
    evidence::SampleBatch batch;
    if (scope > 0) {
      batch.key = {.source_type = evidence::SourceType::kSlurm,
                   .identity = fmt::format("job:{}", 41'000 + scope)};
    }
    batch.times = {at, at + std::chrono::seconds(5)};
    for (int series = 0; series < 25; ++series) {
      batch.columns.push_back({.metric = fmt::format("metric-{}", series),
                               .source = scope == 0 ? "host" : "cgroup",
                               .unit = "bytes",
                               .values = {series * 1.5e6 + scope, series * 1.6e6 + scope}});
      *points += 2;
    }
    records.push_back(evidence::Encode(
        {.sequence = std::uint64_t(scope) + 1, .observed_at = at, .payload = std::move(batch)}));
  }
  return records;
}

std::uint64_t Fill(const std::string& spool, int hosts, int segments) {
  std::uint64_t points = 0;
  SystemFileIo files;
  const base::WallTime now = base::SystemClock().Now();
  for (int h = 0; h < hosts; ++h) {
    const std::string host = fmt::format("node{:04}", h);
    const std::string directory = base::JoinPath(spool, host);
    (void)base::MakeDirectories(directory, 0700);
    const std::string stream = base::NewUuid(now);
    for (int i = 0; i < segments; ++i) {
      const base::WallTime at = now - std::chrono::seconds(10) * (segments - i);
      SegmentEncoder encoder;
      const SegmentName name{.stream_id = stream, .sequence = std::uint64_t(i) + 1};
      std::string bytes = SegmentEncoder::Begin(
          {.stream_id = stream, .sequence = name.sequence, .begun = {.wall = at}, .host = host},
          &encoder);
      encoder.AppendBlock(BlockKind::kSamples, Records(at, &points), &bytes);
      encoder.AppendTrailer({.wall = at}, &bytes);
      auto fd = files.Create(base::JoinPath(directory, FormatSegmentName(name)));
      if (!fd || !files.Write(fd->get(), bytes, 0)) ::_exit(1);
    }
  }
  return points;
}

void MeasureIdle(const std::string& spool, int hosts, bench::Report* report) {
  (void)Fill(spool, hosts, /*segments=*/0);
  base::SystemClock clock;
  SystemFileIo files;
  DrainWorker worker({.reader = {.spool = spool}}, files, clock);
  for (int i = 0; i < 3; ++i) worker.Look();  // lists all, and once more
  constexpr int kLooks = 50;
  const double before = CpuSeconds();
  for (int i = 0; i < kLooks; ++i) worker.Look();
  const double look = (CpuSeconds() - before) / kLooks;
  report->Add(fmt::format("idle look at {} hosts", hosts), look * 1000, "ms of CPU");
  report->Add("idle, a look a second", look * 100, "% of one core");
}

void MeasureDrain(const std::string& directory, int hosts, int segments, bench::Report* report) {
  const std::string spool = base::JoinPath(directory, "spool");
  const std::uint64_t points = Fill(spool, hosts, segments);
  base::SystemClock clock;
  SystemFileIo files;
  auto outboxes = Outboxes::Open(
      {.directory = base::JoinPath(directory, "outbox"), .max_bytes = 8ULL << 30}, files, clock);
  if (!outboxes) ::_exit(1);
  Resolver resolver;
  SpoolDrain drain({.state_dir = directory, .worker = {.reader = {.spool = spool}}}, resolver,
                   **outboxes, files, clock);
  const auto all = std::uint64_t(hosts) * std::uint64_t(segments);
  const double cpu_before = CpuSeconds();
  const base::MonoTime began = clock.Mono();
  double longest = 0;
  while (drain.figures().segments < all && clock.Mono() - began < std::chrono::minutes(2)) {
    const base::MonoTime step = clock.Mono();
    drain.Step({.wall = clock.Now(), .mono = step});
    longest = std::max(longest, base::ToSeconds(clock.Mono() - step));
    (void)clock.WaitFor({}, std::chrono::milliseconds(5));
  }
  const double wall = base::ToSeconds(clock.Mono() - began);
  const double cpu = CpuSeconds() - cpu_before;
  report->Add("segments drained", double(drain.figures().segments), "");
  report->Add("segments a second of one core", double(all) / cpu, "1/s");
  report->Add("points a second of one core", double(points) / cpu, "1/s");
  report->Add("segments a second, both threads", double(all) / wall, "1/s");
  report->Add("longest step", longest * 1000, "ms");
  report->Add("2,000 hosts, a segment every 10 s", 200 * cpu / double(all) * 100, "% of one core");
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  report->Add("peak RSS", double(usage.ru_maxrss) / 1024, "MiB");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The samplers' spool, seen by the controller"};
  int idle_hosts = 2000;
  int hosts = 200;
  int segments = 30;
  app.add_option("--idle-hosts", idle_hosts, "Hosts in the idle look");
  app.add_option("--hosts", hosts, "Hosts that left segments");
  app.add_option("--segments", segments, "Segments of each");
  CLI11_PARSE(app, argc, argv);
  base::ConfigureLog(base::LogLevel::kOff, base::LogFormat::kText);
  const auto temp = base::TempDir::Create("spool-bench");
  if (!temp) return 1;
  bench::Report report("spool");
  MeasureIdle(base::JoinPath(temp->path(), "idle"), idle_hosts, &report);
  MeasureDrain(temp->path(), hosts, segments, &report);
  report.Print();
  return 0;
}
