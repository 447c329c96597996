// Accounting history as backfill reads it: generated output of sacct through the reader to
// executions (thrown away), then through Backfill into a real outbox. Rates in rows, as sacct
// counts: a job and each of its steps is one.
//   backfill_bench [--directory DIR] [--rows N]
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/log.h"
#include "bench/bench_report.h"
#include "daemon/outboxes.h"
#include "schedulers/slurm/backfill.h"
#include "schedulers/slurm/commands/sacct_testing.h"

namespace {

using namespace expanse;
using namespace expanse::schedulers::slurm;
using namespace std::chrono_literals;
using F = SacctField;

constexpr std::int64_t kBegin = 1'790'000'000;
constexpr std::size_t kRowsOfOneJob = 4;  // itself, batch, extern and one step

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

double ResidentMiB() {
  std::ifstream status("/proc/self/statm");
  long pages = 0;
  status >> pages >> pages;
  return static_cast<double>(pages) * 4096 / (1 << 20);
}

double CpuSeconds() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// What one job of the many looks like; ids and times are put in for each.
class History {
 public:
  explicit History(std::string separator) : separator_(std::move(separator)) {
    const std::string submit_line =
        "sbatch --account=bio --time=08:00:00 --ntasks=8 --mem-per-cpu=4G --gres=gpu:a100:2 "
        "/home/someone/projects/protein/run_all.sh --config configs/large.yaml --seed 42";
    template_ = Line(JobCells({{F::kJobIdRaw, "@I"},
                               {F::kDbIndex, "@I"},
                               {F::kSubmit, "@S"},
                               {F::kStart, "@B"},
                               {F::kEnd, "@E"},
                               {F::kWorkDir, "/home/someone/projects/protein"},
                               {F::kSubmitLine, submit_line},
                               {F::kReqTres, "billing=8,cpu=8,gres/gpu=2,mem=32G,node=2"},
                               {F::kAllocTres,
                                "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=32G,"
                                "node=2"},
                               {F::kNodeList, "gpu[014-015]"},
                               {F::kNodeCount, "2"}}));
    for (const char* step : {"batch", "extern", "0"}) {
      template_ +=
          Line(StepCells(step, {{F::kJobIdRaw, std::string("@I.") + step},
                                {F::kDbIndex, "@I"},
                                {F::kStart, "@B"},
                                {F::kEnd, "@E"},
                                {F::kTaskCount, "8"},
                                {F::kMaxRss, "2147483648"},
                                {F::kAveRss, "2047483648"},
                                {F::kTotalCpu, "05:10:20"},
                                {F::kTresUsageInTot,
                                 "cpu=05:10:20,energy=0,fs/disk=9120312345,gres/gpumem=61G,"
                                 "gres/gpuutil=171,mem=16379869184,pages=12,vmem=26379869184"},
                                {F::kTresUsageOutTot, "energy=0,fs/disk=2120312345"},
                                {F::kSubmitLine, "srun python train.py"}}));
    }
  }

  // Job `number` and its steps.
  void Append(std::size_t number, std::string& out) const {
    const std::int64_t submit = kBegin + static_cast<std::int64_t>(number) / 50;
    for (std::size_t at = 0; at < template_.size();) {
      const std::size_t mark = std::min(template_.find('@', at), template_.size());
      out.append(template_, at, mark - at);
      at = mark + 2;
      if (mark == template_.size()) break;
      switch (template_[mark + 1]) {
        case 'I':
          out += std::to_string(number + 1);
          break;
        case 'S':
          out += std::to_string(submit);
          break;
        case 'B':
          out += std::to_string(submit + 30);
          break;
        default:
          out += std::to_string(submit + 4000);
      }
    }
  }

 private:
  std::string Line(const SacctCells& cells) const {
    return SacctLine(SacctFormat::Full(), separator_, cells);
  }
  const std::string separator_;
  std::string template_;
};

// Feeds `rows` rows in pieces of 64 KiB. Returns the bytes.
std::size_t Generate(const History& history, std::size_t rows,
                     const std::function<bool(std::string_view)>& take) {
  std::string piece;
  std::size_t bytes = 0;
  for (std::size_t job = 0; job < rows / kRowsOfOneJob; ++job) {
    history.Append(job, piece);
    if (piece.size() < (64U << 10)) continue;
    bytes += piece.size();
    if (!take(piece)) return bytes;
    piece.clear();
  }
  bytes += piece.size();
  take(piece);
  return bytes;
}

// Answers as sacct would, one chunk with all of it.
class GeneratingRunner final : public CommandRunner {
 public:
  explicit GeneratingRunner(std::size_t rows) : rows_(rows) {}
  CommandOutcome Run(const Command& command, std::stop_token) override {
    CommandOutcome outcome{.status = {}, .out = {}, .cost = {}};
    if (!command.on_output) {
      for (const SacctField field : SacctFormat::Full().columns())
        outcome.out += std::string(Name(field)) + " ";
      return outcome;
    }
    std::string separator;
    for (const std::string& argument : command.arguments) {
      constexpr std::string_view kOption = "--delimiter=";
      if (argument.starts_with(kOption)) separator = argument.substr(kOption.size());
    }
    Generate(History(separator), rows_, command.on_output);
    return outcome;
  }

 private:
  const std::size_t rows_;
};

void ReadToNowhere(std::size_t rows, bench::Report& report) {
  const std::string separator = NewSacctSeparator();
  const History history(separator);
  const auto generation_started = std::chrono::steady_clock::now();
  const std::size_t bytes = Generate(history, rows, [](std::string_view) { return true; });
  const double generation = Seconds(generation_started);

  std::size_t runs = 0;
  SacctReader reader(SacctFormat::Full(), separator, {}, [&](Job) { ++runs; });
  const auto started = std::chrono::steady_clock::now();
  Generate(history, rows, [&](std::string_view piece) {
    reader.Feed(piece);
    return true;
  });
  reader.Finish(/*whole=*/true);
  const double seconds = Seconds(started) - generation;
  report.Add("read.rows_per_second", static_cast<double>(rows) / seconds, "rows/s");
  report.Add("read.bytes_per_second", static_cast<double>(bytes) / seconds / (1 << 20), "MiB/s");
  report.Add("read.runs", static_cast<double>(runs), "runs");
  report.Add("read.rss", ResidentMiB(), "MiB");
}

base::Status ImportToOutbox(std::size_t rows, const std::string& directory, bench::Report& report) {
  base::SystemClock clock;
  daemon::SystemFileIo files;
  EXPANSE_ASSIGN_OR_RETURN(
      auto outboxes,
      daemon::Outboxes::Open({.directory = directory + "/outbox", .max_bytes = 16ULL << 30}, files,
                             clock));
  GeneratingRunner runner(rows);
  BackfillOptions options{.cluster = "bench",
                          .state_path = directory + "/resume.json",
                          .span = {base::WallTime(std::chrono::seconds(kBegin)),
                                   base::WallTime(std::chrono::seconds(kBegin + 86'400))},
                          .pause = 0ms,
                          .share = 1};
  Backfill backfill(options, runner, *outboxes, clock, {});
  const double cpu_before = CpuSeconds();
  const auto started = std::chrono::steady_clock::now();
  EXPANSE_RETURN_IF_ERROR(backfill.Run({}));
  const double seconds = Seconds(started);
  report.Add("import.rows_per_second", static_cast<double>(backfill.progress().rows) / seconds,
             "rows/s");
  report.Add("import.cpu", CpuSeconds() - cpu_before, "s");
  report.Add("import.runs", static_cast<double>(backfill.progress().runs), "runs");
  report.Add("import.outbox_bytes_per_run",
             static_cast<double>(outboxes->lifecycle().figures().bytes) /
                 static_cast<double>(backfill.progress().runs),
             "bytes");
  report.Add("import.rss", ResidentMiB(), "MiB");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Accounting history through reader, executions and outbox");
  std::string directory;
  std::size_t rows = 1'000'000;
  app.add_option("--directory", directory, "Where the outbox goes (default: a temporary one)");
  app.add_option("--rows", rows, "Rows of sacct");
  CLI11_PARSE(app, argc, argv);
  base::ConfigureLog(base::LogLevel::kWarn, base::LogFormat::kText);
  auto temporary = base::TempDir::Create("backfill_bench");
  if (directory.empty() && temporary) directory = temporary->path();
  bench::Report report("backfill");
  ReadToNowhere(rows, report);
  if (auto done = ImportToOutbox(rows, directory, report); !done) {
    fmt::print(stderr, "backfill_bench: {}\n", done.error().message);
    return 1;
  }
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  report.Add("max_rss", static_cast<double>(usage.ru_maxrss) / 1024, "MiB");
  report.Print();
  return 0;
}
