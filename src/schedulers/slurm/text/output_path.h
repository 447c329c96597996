// Where a job's output goes: expansion of the patterns of --output and --error as sbatch(1),
// "filename pattern", describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schedulers/slurm/text/version.h"

namespace expanse::schedulers::slurm {

// What the patterns stand for. Of a batch script: the first node, task 0, no step.
struct OutputNames {
  std::uint32_t job_id = 0;                   // %j: raw
  std::optional<std::uint32_t> array_job_id;  // %A; absent: no array, %A is then the job's id
  std::optional<std::uint32_t> array_task;    // %a
  std::string step;                           // %s; "" is the batch script ("batch")
  std::string node;                           // %N: short host name, not Slurm's name of the node
  std::uint32_t node_index = 0;               // %n
  std::uint32_t task = 0;                     // %t
  std::string user;                           // %u
  std::string job_name;                       // %x
  std::string working_directory;              // what relative paths are relative to
  std::optional<Version> version;             // %b is unknown before 23.02; absent: a newer one
};

struct OutputPath {
  enum class Kind : std::uint8_t {
    kFile,
    kDiscarded,  // /dev/null: the job wants none
    kUnknown,    // nothing given (an interactive job writes to the terminal), or not absolute
  };
  Kind kind = Kind::kUnknown;
  std::string path;  // of kFile and kDiscarded
  bool operator==(const OutputPath&) const = default;
};

// A backslash anywhere switches expansion off; each is left out and the character behind it kept. A
// number behind % pads what is numeric with zeros, to 10 at most. Letters that stand for nothing
// stay. All this as slurmstepd of 22.05.8 was seen to do it.
OutputPath ExpandOutputPath(std::string_view pattern, const OutputNames& names);

// For a batch job that named no output: slurm-%j.out, or slurm-%A_%a.out in an array.
std::string_view DefaultOutputPattern(const OutputNames& names);

// A path that Slurm has expanded itself (squeue and scontrol since 24.05): only made absolute.
OutputPath AsOutputPath(std::string_view path, std::string_view working_directory);

}  // namespace expanse::schedulers::slurm
