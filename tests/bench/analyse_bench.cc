// How long `analyse` takes against a store with many executions and bundles, how fast the history
// index follows the store, and what its similarity index needs in memory. A generator fills a real
// SQLite store, as the daemon's ingest would; figures of look-ups are by what was asked for.
//
//   analyse_bench [--executions 1000000] [--bundles 20000] [--batch 5000] [--queries 400]
//                 [--directory DIR]
//
// With a directory the stores stay there, and a second run with the same sizes measures only. What
// is filled and indexed is not synced to the disk: that is neither measured nor worth keeping.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/files.h"
#include "base/metrics.h"
#include "base/time.h"
#include "bench/bench_report.h"
#include "intelligence/analyse/analyse.h"
#include "intelligence/history/indexed_history.h"
#include "store/blobs/directory_blob_store.h"
#include "store/records/sqlite_evidence_store.h"
#include "store/series/sqlite_series_store.h"

namespace {

bool filling = false;

int Sync(long call, int descriptor) {
  return filling ? 0 : static_cast<int>(::syscall(call, descriptor));
}

}  // namespace

// In place of the C library's, for the stores as for SQLite.
extern "C" int fsync(int descriptor) { return Sync(SYS_fsync, descriptor); }
extern "C" int fdatasync(int descriptor) { return Sync(SYS_fdatasync, descriptor); }

namespace expanse {
namespace {

namespace history = intelligence::history;
namespace analyse = intelligence::analyse;

struct Sizes {
  std::size_t executions = 1'000'000;
  std::size_t bundles = 20'000;
  std::size_t family = 20;  // bundles that are edits of one source
  std::size_t batch = 5'000;
  std::size_t queries = 400;  // of each kind
  std::string directory;
};

using Steady = std::chrono::steady_clock;

double Since(Steady::time_point start) {
  return std::chrono::duration<double>(Steady::now() - start).count();
}

double ThreadCpu() {
  struct timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double ResidentMiB() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Ends the program on an error: a bench with a failing store measures nothing.
template <typename T>
T Must(base::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "analyse_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// ---- sources

struct Source {
  std::string script;
  std::string program;
};

// A batch script and a program of about a hundred lines; those of one family differ in a few.
Source MakeSource(const Sizes& sizes, std::size_t bundle) {
  std::mt19937_64 family(bundle / sizes.family + 1);
  std::mt19937_64 own(bundle + 1'000'000);
  const auto word = [](std::mt19937_64& random) {
    static constexpr const char* kWords[] = {
        "loader", "batch",  "model", "epoch", "tensor", "shard",  "sample", "mesh",   "field",
        "solver", "matrix", "cell",  "graph", "index",  "config", "writer", "reader", "cache",
        "layer",  "stage",  "queue", "node",  "task",   "token",  "probe",  "energy", "force"};
    return std::string(kWords[random() % std::size(kWords)]) + std::to_string(random() % 9);
  };
  Source source;
  source.script = "#!/bin/bash\n#SBATCH --job-name=job" + std::to_string(bundle % 50) +
                  "\n#SBATCH --mem=16G\n#SBATCH --time=2:00:00\n#SBATCH --cpus-per-task=8\n"
                  "module load " +
                  word(family) + " " + word(family) + "\n";
  for (int i = 0; i < 6; ++i) source.script += "export " + word(family) + "=" + word(family) + "\n";
  source.script += "srun python train.py --steps " + std::to_string(100 + bundle % sizes.family) +
                   " --set " + word(own) + "\n";
  source.program = "import torch\n";
  for (int i = 0; i < 100; ++i) {
    const std::string line = word(family) + " = " + word(family) + "(" + word(family) + ", " +
                             std::to_string(family() % 1000) + ")\n";
    source.program += own() % 25 == 0 ? word(own) + " = " + word(own) + "()\n" : line;
  }
  return source;
}

// ---- the store

store::EvidenceChange BundleChange(store::BlobStore& blobs, const Source& source,
                                   const std::string& execution_id, std::uint64_t sequence,
                                   const std::string& hash) {
  store::BundleRow row{.bundle_hash = hash, .files = {}, .skipped = {}};
  const std::pair<const char*, const std::string*> files[] = {
      {"/home/u/job.sh", &source.script}, {"/home/u/train.py", &source.program}};
  for (const auto& [path, text] : files) {
    row.files.push_back({.path = path,
                         .role = row.files.empty() ? "script" : "import",
                         .blob = Must(blobs.Put(*text)),
                         .content_hash = base::Sha256Hex(*text),
                         .size_bytes = text->size()});
  }
  return {.sequence = sequence, .execution_id = execution_id, .bundle = std::move(row)};
}

std::string ExecutionIdOf(std::size_t i) {
  const std::string hex = base::Sha256Hex(std::to_string(i));
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-8" + hex.substr(13, 3) + "-a" +
         hex.substr(17, 3) + "-" + hex.substr(20, 12);
}

// A few bundles have most of the runs.
std::size_t BundleOf(const Sizes& sizes, std::size_t i, std::mt19937_64& random) {
  if (i < sizes.bundles) return i;  // each at least once
  const double u = static_cast<double>(random() >> 11) / 9007199254740992.0;
  return static_cast<std::size_t>(u * u * u * static_cast<double>(sizes.bundles));
}

evidence::Execution MakeExecution(std::size_t i, std::size_t bundle, base::WallTime start,
                                  std::mt19937_64& random) {
  using evidence::ExecutionStatus;
  using evidence::Outcome;
  evidence::Execution e;
  e.native_id = std::to_string(1000 + i);
  e.name = "job" + std::to_string(bundle % 50);
  e.user = "user" + std::to_string(bundle % 300);
  e.account = "lab" + std::to_string(bundle % 20);
  e.queue = "gpu";
  e.working_directory = "/home/" + e.user + "/project";
  e.command = {"/home/" + e.user + "/job.sh --fold " + std::to_string(random() % 5)};
  e.nodes = {"node" + std::to_string(i % 64)};
  const bool failed = random() % 12 == 0;
  e.status = failed ? ExecutionStatus::kFailed : ExecutionStatus::kSucceeded;
  e.outcome = !failed             ? Outcome::kSuccess
              : random() % 2 == 0 ? Outcome::kOutOfMemory
                                  : Outcome::kFailure;
  e.submitted_at = start + std::chrono::seconds(i);
  e.started_at = *e.submitted_at + std::chrono::seconds(30);
  e.ended_at = *e.started_at + std::chrono::seconds(300 + random() % 900);
  e.requested = {.cpu_cores = 8, .memory_bytes = 16ULL << 30, .walltime_s = 7200};
  e.used.cpu_s = 1000.5;
  e.used.memory_peak_bytes = (2ULL << 30) + random() % (4ULL << 30);
  e.used.memory_peak_basis = "cgroup_peak";
  e.bundle_hash = "sha256:" + std::to_string(bundle);
  return e;
}

void Fill(store::EvidenceStore& records, store::BlobStore& blobs, const Sizes& sizes,
          bench::Report& report) {
  const base::WallTime start(std::chrono::seconds(1'700'000'000));
  const std::uint64_t there = Must(records.Watermark("compute-0", "fill"));
  if (there > 0) return;
  std::mt19937_64 random(1);
  const auto begun = Steady::now();
  std::vector<store::EvidenceChange> changes;
  std::uint64_t sequence = 0;
  for (std::size_t i = 0; i < sizes.executions; ++i) {
    const std::size_t bundle = BundleOf(sizes, i, random);
    const std::string id = ExecutionIdOf(i);
    changes.push_back({.sequence = ++sequence,
                       .execution_id = id,
                       .source_type = evidence::SourceType::kSlurm,
                       .execution = MakeExecution(i, bundle, start, random)});
    if (i < sizes.bundles) {
      changes.push_back(BundleChange(blobs, MakeSource(sizes, bundle), id, ++sequence,
                                     "sha256:" + std::to_string(bundle)));
    }
    if (changes.size() < sizes.batch && i + 1 < sizes.executions) continue;
    const std::string compute = "compute-" + std::to_string(i / sizes.batch % 3);
    Must(records.Apply("org", compute, "fill", changes));
    changes.clear();
  }
  report.Add("filling the store", Since(begun), "s");
  report.Add("executions filled", static_cast<double>(sizes.executions) / Since(begun), "1/s");
}

// ---- look-ups

enum class Kind : std::uint8_t { kPopular, kAny, kEdited, kNamed, kUnknown };

analyse::Question Ask(const Sizes& sizes, Kind kind, std::mt19937_64& random) {
  std::size_t bundle = random() % sizes.bundles;
  if (kind == Kind::kPopular) bundle = random() % std::min<std::size_t>(20, sizes.bundles);
  Source source = MakeSource(sizes, bundle);
  if (kind == Kind::kEdited)
    source.program +=
        "\nprint(" + std::to_string(random()) + ")\nsave(model" + std::to_string(random()) + ")\n";
  if (kind == Kind::kNamed || kind == Kind::kUnknown) {
    source.program = "x" + std::to_string(random()) + " = y" + std::to_string(random()) + "()\n";
    source.script = "#!/bin/bash\n#SBATCH --mem=4G --time=60\n#SBATCH --job-name=" +
                    std::string(kind == Kind::kNamed ? "job7" : "new") + "\n./a" +
                    std::to_string(random()) + " b" + std::to_string(random()) + "\n";
  }
  analyse::Question question;
  question.target = {.path = "job.sh", .data = source.script, .role = "script"};
  question.files = {{.path = "train.py", .data = source.program, .role = "import"}};
  question.local_user = kind == Kind::kNamed ? "user7" : "somebody";
  return question;
}

struct Latencies {
  std::vector<double> look_up;    // ms
  std::vector<double> whole;      // ms
  std::vector<double> whole_cpu;  // ms of this thread's processor time
  double runs = 0;
  double found = 0;

  void Add(const Latencies& other) {
    const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(look_up, other.look_up);
    append(whole, other.whole);
    append(whole_cpu, other.whole_cpu);
  }
};

Latencies Measure(history::History& index, const Sizes& sizes, Kind kind) {
  std::mt19937_64 random(static_cast<std::uint64_t>(kind) + 5);
  Latencies latencies;
  for (std::size_t i = 0; i < sizes.queries; ++i) {
    const analyse::Question question = Ask(sizes, kind, random);
    const double cpu = ThreadCpu();
    const auto begun = Steady::now();
    const analyse::Target target = Must(analyse::ReadTarget(question));
    history::Query query = analyse::QueryFor(question, target);
    query.organisation_id = "org";
    const auto asked = Steady::now();
    const history::Found found = Must(index.Find(query));
    latencies.look_up.push_back(Since(asked) * 1e3);
    const analyse::Answer answer = analyse::Compose(question, target, found);
    latencies.whole.push_back(Since(begun) * 1e3);
    latencies.whole_cpu.push_back((ThreadCpu() - cpu) * 1e3);
    latencies.runs += static_cast<double>(found.runs.size());
    latencies.found += found.runs.empty() ? 0 : 1;
    if (answer.target_kind.empty()) std::exit(1);  // keeps the answer
  }
  return latencies;
}

void AddRow(const std::string& name, Latencies latencies, bench::Report& report) {
  report.Add(name + ": look-up, median", bench::Quantile(latencies.look_up, 0.5), "ms");
  report.Add(name + ": look-up, p99", bench::Quantile(latencies.look_up, 0.99), "ms");
  report.Add(name + ": analyse, median", bench::Quantile(latencies.whole, 0.5), "ms");
  report.Add(name + ": analyse, p99", bench::Quantile(latencies.whole, 0.99), "ms");
  report.Add(name + ": analyse, median of processor time",
             bench::Quantile(latencies.whole_cpu, 0.5), "ms");
  report.Add(name + ": analyse, p99 of processor time", bench::Quantile(latencies.whole_cpu, 0.99),
             "ms");
}

void LookUps(history::History& index, const Sizes& sizes, bench::Report& report) {
  const std::pair<const char*, Kind> kinds[] = {{"a source with very many runs", Kind::kPopular},
                                                {"any recorded source", Kind::kAny},
                                                {"an edited source", Kind::kEdited},
                                                {"user and name only", Kind::kNamed},
                                                {"unknown", Kind::kUnknown}};
  Latencies all;
  for (const auto& [name, kind] : kinds) {
    const Latencies latencies = Measure(index, sizes, kind);
    AddRow(name, latencies, report);
    const auto queries = static_cast<double>(sizes.queries);
    report.Add(std::string(name) + ": runs found, mean", latencies.runs / queries, "");
    report.Add(std::string(name) + ": with an answer", 100 * latencies.found / queries, "%");
    all.Add(latencies);
  }
  AddRow("all kinds alike", all, report);
}

int Bench(const Sizes& sizes) {
  const base::TempDir temporary = Must(base::TempDir::Create("analyse_bench"));
  const std::string directory = sizes.directory.empty() ? temporary.path() : sizes.directory;
  std::filesystem::create_directories(directory);
  base::SystemClock clock;
  base::MetricRegistry metrics;
  bench::Report report("analyse");
  const auto path = [&](const char* name) { return base::JoinPath(directory, name); };
  auto records = Must(store::SqliteEvidenceStore::Open({.path = path("records.db")}, clock));
  auto series = Must(store::SqliteSeriesStore::Open({.path = path("series.db")}));
  auto blobs = Must(store::DirectoryBlobStore::Open(path("blobs"), clock));
  filling = true;
  Fill(*records, *blobs, sizes, report);

  const auto open = [&] {
    return Must(history::IndexedHistory::Open(
        {.path = path("history.db")}, {.records = *records, .series = *series, .blobs = *blobs},
        clock, metrics));
  };
  auto index = open();
  const std::uint64_t before = Must(index->Size()).runs;
  const auto begun = Steady::now();
  const double cpu = ThreadCpu();
  Must(index->CatchUp());
  filling = false;
  const auto size = Must(index->Size());
  if (size.runs > before) {
    const auto taken_in = static_cast<double>(size.runs - before);
    report.Add("indexing", Since(begun), "s");
    report.Add("executions indexed", taken_in / Since(begun), "1/s");
    report.Add("executions indexed per core", taken_in / (ThreadCpu() - cpu), "1/s");
  }
  report.Add("executions in the index", static_cast<double>(size.runs), "");
  report.Add("bundles in the index", static_cast<double>(size.bundles), "");
  report.Add("similarity index in memory", static_cast<double>(size.memory_bytes) / 1048576, "MiB");
  report.Add("index on disk",
             static_cast<double>(std::filesystem::file_size(path("history.db"))) / 1048576, "MiB");
  index.reset();
  const auto reopened = Steady::now();
  index = open();
  report.Add("opening the index", Since(reopened), "s");
  LookUps(*index, sizes, report);
  report.Add("peak resident memory", ResidentMiB(), "MiB");
  report.Print();
  return 0;
}

}  // namespace
}  // namespace expanse

int main(int argc, char** argv) {
  expanse::Sizes sizes;
  CLI::App app("Latency of analyse at a size");
  app.add_option("--executions", sizes.executions, "executions in the store")
      ->check(CLI::PositiveNumber);
  app.add_option("--bundles", sizes.bundles, "source bundles, each with at least one execution")
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", sizes.batch, "changes per transaction when filling")
      ->check(CLI::PositiveNumber);
  app.add_option("--queries", sizes.queries, "look-ups of each kind")->check(CLI::PositiveNumber);
  app.add_option("--directory", sizes.directory,
                 "where the stores are made and stay; empty: a temporary directory");
  CLI11_PARSE(app, argc, argv);
  return expanse::Bench(sizes);
}
