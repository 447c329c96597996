// What a submission says: requested resources with the exact place of every value, the commands it
// runs, the files it names. Made by the parsers of sbatch/, kubernetes/, nomad/ and source/ (one
// entry: parse.h), read by the predictor and the patcher. Pure data; everything is bounded by the
// text it came from. What cannot be evaluated is unresolved, never guessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::workload {

// Bytes [begin, end) of the file, and where a person finds them: line and column from 1, columns in
// bytes.
struct Place {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool operator==(const Place&) const = default;
};

// Line and column of a byte. Linear; parsers that place many values keep an index of their own.
Place PlaceOf(std::string_view text, std::size_t begin, std::size_t end);
// The line of `text` that holds the byte `at`, without its end.
std::string_view LineAt(std::string_view text, std::size_t at);

enum class Format : std::uint8_t { kSbatch, kKubernetes, kNomad, kSource };
// "sbatch", "kubernetes", "nomad", "source".
std::string_view Name(Format format);

enum class Quantity : std::uint8_t {
  kCpu,        // cores; MHz where the unit says so (Nomad)
  kMemory,     // bytes
  kGpu,        // devices
  kGpuMemory,  // bytes per device
  kWalltime,   // seconds
  kNodes,
  kTasks,
  kDisk,  // bytes
};
std::string_view Name(Quantity quantity);  // "cpu", "memory", "gpu", …

// What an amount is counted per, so that totals can be made of it.
enum class Per : std::uint8_t { kJob, kNode, kTask, kCpu, kGpu, kSocket, kContainer };
std::string_view Name(Per per);

// A request is what the scheduler reserves; a limit what the workload may reach (Kubernetes limits,
// Nomad memory_max, walltimes are both and stand as requests).
enum class Bound : std::uint8_t { kRequest, kLimit };

// One value as written.
struct Setting {
  Quantity quantity = Quantity::kCpu;
  Per per = Per::kJob;
  Bound bound = Bound::kRequest;
  std::string name;                      // "--mem-per-cpu", "resources.limits.memory", "memory"
  std::string written;                   // the bytes at `place`
  Place place;                           // of the value alone, without name, quotes or "="
  std::optional<double> value;           // in the quantity's unit; absent: unresolved
  std::string unresolved;                // why: "variable var.memory", "template", "shell"
  std::string gpu_type;                  // of kGpu: as written ("a100"), or the resource's name
  std::optional<std::string> unit = {};  // "MHz" for Nomad's cpu; absent: the quantity's own
  // False: written, but something later or stronger replaces it, or the scheduler ignores it.
  bool effective = true;
};

// The totals of a part. Absent: not asked for, or unresolved (then `unresolved` of a setting says
// so).
struct Request {
  std::optional<double> cpu_cores;
  std::optional<std::uint64_t> memory_bytes;  // of the whole part; 0 in Slurm means all of the node
  std::optional<double> gpu_count;
  std::string gpu_type;
  std::optional<std::uint64_t> gpu_memory_bytes;  // per device
  std::optional<std::int64_t> walltime_s;
  std::optional<std::uint32_t> nodes;
  std::optional<std::uint32_t> tasks;
  // What the scheduler would do with what is not written, as far as the text alone tells.
  bool exclusive = false;  // whole nodes
  bool operator==(const Request&) const = default;
};

// A command that the part runs. Words are unquoted; one that would need a shell to know (variable,
// substitution) is kept as written and marked.
struct Word {
  std::string text;
  bool resolved = true;
  bool operator==(const Word&) const = default;
};
struct Command {
  std::vector<Word> words;
  std::vector<std::string> launcher;  // "srun -n 4", "torchrun --nproc_per_node 8": taken off
  Place place;
  std::string input = {};   // text given on standard input: a here-document or here-string
  std::string output = {};  // the file that standard output goes to
};

// A place where a setting that is missing can be written.
struct Insertion {
  Quantity quantity = Quantity::kMemory;
  Bound bound = Bound::kRequest;
  std::size_t offset = 0;  // before this byte
  std::string before;      // text around the value: "#SBATCH --mem=", …
  std::string after;       // …, "\n"
};

// What is scheduled as one: a batch script (or a component of a het job), a container of a pod
// template, a task of a group.
struct Part {
  std::string workload;  // name of the object it belongs to: job name, metadata.name
  std::string kind;      // "sbatch", "Deployment", "RayJob", "service", "python"
  std::string name_space;
  std::string group;  // Nomad group, Ray worker group, replicated job
  std::string name;   // container or task; empty for a script
  std::string image;
  bool is_init = false;  // init containers, prestart tasks
  double replicas = 1;   // pods or allocations of this part at the same time
  std::optional<std::uint32_t> array_size;
  std::vector<Setting> settings;  // in file order
  Request request;                // of one replica
  std::vector<Command> commands;
  std::map<std::string, std::string> environment;  // literal ones
  std::map<std::string, std::string> annotations;  // labels and annotations, meta, comment pairs
  std::vector<Insertion> insertions;
};

struct Note {
  std::uint32_t line = 0;
  std::string reason;   // stable word: "ignored_after_command", "template", "unknown_option"
  std::string message;  // for people
};

struct Submission {
  Format format = Format::kSource;
  std::string language;  // of kSource: "python", "shell", "r", …
  std::string name;      // of the first workload
  std::vector<Part> parts;
  std::vector<std::string> files;    // that it names, as written
  std::vector<std::string> outputs;  // names of output files: --output, --error
  std::string directory;             // where it runs, if it says so (--chdir): of relative names
  std::vector<Note> notes;
};

// Why a file is not read: never a guess about what it might have meant.
struct Refusal {
  std::uint32_t line = 0;  // 0: the file as a whole
  std::uint32_t column = 0;
  std::string reason;  // stable word: "templated", "syntax", "not_a_workload", "too_large"
  std::string message;
};

template <typename T>
using Parsed = std::expected<T, Refusal>;

// The largest text that is parsed: 4 MiB, as slurmctld's max_script_size.
inline constexpr std::size_t kMaxText = std::size_t{4} << 20;

}  // namespace expanse::workload
