// What a diagnosis is made from: everything that is known of one execution. Plain data; whoever has
// the stores fills it (intelligence plane), and benches and tests fill it from files. Absent is
// unknown, never zero; a part that was not captured is empty, and the diagnosis says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "evidence/execution.h"
#include "intelligence/predict/run.h"

namespace expanse::intelligence::diagnose {

// One captured output stream: its end, and the first error region where the end no longer shows it.
struct LogText {
  std::string stream;  // "stdout", "stderr", "combined"
  std::string data;
  std::uint64_t offset = 0;       // of data's first byte in the whole stream
  std::uint64_t total_bytes = 0;  // of the whole stream; 0: what `data` holds
  std::string first_error;
  std::uint64_t first_error_offset = 0;
};

// Something that kernel, cgroup, GPU driver or scheduler said beside the job's own output.
struct Event {
  std::string source;  // "kernel", "cgroup", "xid", "kubernetes", "nomad", "slurm"
  std::optional<base::WallTime> at;
  std::string node;
  std::string text;
};

// Figures of the run: RESOURCE SNAPSHOT.
struct Snapshot {
  std::optional<double> runtime_s;
  std::string gpu_type;
  std::string cuda_version;
  std::optional<double> gpu_count;
  std::optional<double> gpu_utilisation_pct;
  std::optional<double> gpu_memory_available_bytes;  // per device
  std::optional<double> gpu_memory_observed_bytes;   // of the device that needed most
  std::optional<double> cpu_requested;
  std::optional<double> cpu_mean_cores;
  std::optional<double> host_ram_observed_peak_bytes;
  std::optional<double> host_ram_requested_bytes;
  std::optional<double> walltime_s;
  // From the series, where there are any: how long before its end the run last did anything on CPU
  // or GPU, and how much its memory grew over the second half of it, per hour.
  std::optional<double> idle_tail_s;
  std::optional<double> memory_growth_bytes_per_hour;
};

struct SourceText {
  std::string path;
  std::string role;  // "script", "argument", "import"
  std::string data;
};

// Another run of the same workload.
struct SimilarRun {
  predict::Run run;
  std::string compute_id;
  std::string failure_class;  // as diagnosed; empty: none, or never diagnosed
  std::vector<std::string> nodes;
};

// How often the node showed a class for executions of other workloads that had one node only.
struct NodeRecord {
  std::string node;
  std::string failure_class;
  std::uint32_t executions = 0;
  std::uint32_t users = 0;
  std::uint32_t elsewhere = 0;    // such executions on other nodes of the compute
  std::uint32_t other_nodes = 0;  // on which anything failed
};

struct Case {
  evidence::Execution execution;
  std::string compute_name;
  std::vector<LogText> logs;
  std::vector<Event> events;
  Snapshot snapshot;
  std::size_t series_count = 0;  // metric series that the snapshot was made from
  std::vector<SourceText> sources;
  std::size_t sources_skipped = 0;
  std::vector<SimilarRun> similar;
  predict::Basis similar_basis = predict::Basis::kNone;
  std::vector<NodeRecord> node_records;
};

}  // namespace expanse::intelligence::diagnose
