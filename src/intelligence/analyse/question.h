// What `analyse` is asked and what it answers. Plain data in base units; protobuf stays at the
// plane's edge. Absent is unknown, never zero.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "intelligence/predict/run.h"

namespace expanse::intelligence::analyse {

struct File {
  std::string path;  // as the user named it
  std::string data;
  std::string role;  // "script", "argument", "import"
};

struct Question {
  File target;
  std::vector<File> files;     // those that the target names
  predict::Amounts requested;  // in place of what the target asks for
  std::string local_user;      // the asker's name on their machine
  std::string workload;        // of a target that has several; empty: the largest
  std::map<std::string, std::string> variables;
  bool patch = true;
};

// What would end a run, at certain resources.
struct Risk {
  // Absent: it is there, how likely is unknown.
  std::optional<predict::Probability> probability;
  std::string failure_class;  // "none", "out_of_memory", "timeout", "gpu_out_of_memory", "failure"
  std::string summary;
};

struct Gpu {
  std::string model;
  std::optional<std::uint64_t> available_bytes;  // per device
  std::optional<std::uint64_t> peak_bytes;       // of the device that needed most
  std::optional<std::uint64_t> floor_bytes;      // what a device must have at least
  std::optional<double> utilisation_pct;
};

struct Cited {
  std::string execution_id;
  std::string native_id;
  std::string source_type;  // "slurm", …
  std::string compute_id;
  double similarity = 0;
  predict::Ending ending = predict::Ending::kUnknown;
  std::string summary;
};

struct Patch {
  std::string source_file;
  std::string source_hash;  // "sha256:…" of the target's bytes
  std::string diff;         // unified
};

struct Answer {
  predict::Amounts recommended;
  predict::Amounts requested;
  std::string requested_gpu_model;
  std::vector<std::string> unresolved;
  Gpu gpu;
  std::string rationale;
  predict::Confidence confidence = predict::Confidence::kLow;
  // (fit + 1) / (runs + 2); absent without measured runs.
  std::optional<double> confidence_score;
  std::uint32_t fit = 0;
  std::uint32_t measured_runs = 0;
  std::optional<predict::Probability> completion;  // absent: fewer than two recorded runs
  Risk residual;                                   // at the recommended resources
  std::vector<Risk> risks;                         // at the requested ones
  std::string right_size_class = "none";
  bool review_required = false;
  std::optional<Patch> patch;
  std::vector<Cited> evidence;
  std::vector<std::string> warnings;
  std::string job_name;
  std::string target_kind;  // "sbatch", "kubernetes", "nomad", "python", …
  std::string workload;     // set where the target has several
};

}  // namespace expanse::intelligence::analyse
