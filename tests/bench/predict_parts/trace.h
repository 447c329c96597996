// Job and task histories as the trace bench replays them, and their readers. A folder is laid out
// as its index.csv says (a column `file` with paths; "DIR/ (directory)" for folders); without an
// index every file in it is looked at. What a file is, is told by its content, not by its name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "intelligence/predict/run.h"

namespace expanse::bench {

struct TraceRun {
  std::string group;         // process, user and name, or user: as much as the trace tells
  bool same_source = false;  // the group is one program (a workflow's process)
  double submit_s = 0;
  double end_s = 0;  // learnt from then on
  double runtime_s = 0;
  double cores = 1;
  intelligence::predict::Ending ending = intelligence::predict::Ending::kSuccess;
  std::optional<double> memory_bytes;  // peak
  std::optional<double> requested_memory_bytes;
  std::optional<double> requested_walltime_s;
  std::optional<double> input_size;  // known before the run
};

struct Trace {
  std::string name;
  std::vector<TraceRun> runs;  // in submit order
};

struct Traces {
  std::vector<Trace> traces;
  std::vector<std::string> skipped;  // "path: why"
};

base::Result<Traces> ReadTraces(const std::filesystem::path& folder);

// Readers of one file's content; nothing where the content is not of that kind.
using Runs = std::optional<std::vector<TraceRun>>;
Runs ReadNextflow(std::string_view text);       // trace.txt (text values) and raw csv
Runs ReadSnakemake(std::string_view text);      // benchmark tables with a rule column
Runs ReadSpark(std::string_view text);          // gross_runtime per configuration
Runs ReadSacct(std::string_view text);          // sacct -P, with or without a header
Runs ReadSacctJson(std::string_view text);      // sacct --json
Runs ReadJobTable(std::string_view text);       // wallclock_req/run_time and sim_* columns
Runs ReadMeasuredTable(std::string_view text);  // Time, Memory_asigned, RAM_usage
Runs ReadSlurmEvents(std::string_view text);    // the Slurm simulator's submit lines
Runs ReadSwf(std::string_view text);            // Standard Workload Format
Runs ReadWfInstance(std::string_view text);     // WfCommons JSON, schema 1.4 and 1.5
// A task's memory series and its metadata (InfluxDB annotated CSV).
std::optional<TraceRun> ReadMemorySeries(std::string_view memory, std::string_view metadata);

}  // namespace expanse::bench
