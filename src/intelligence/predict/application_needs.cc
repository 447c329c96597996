#include "intelligence/predict/application_needs.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace expanse::intelligence::predict {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Typical {
  std::string_view application;
  std::string_view argument;  // among the arguments, or empty
  double gib = 0;
  std::string_view reason;
};

// The first that fits counts.
constexpr auto kTypical = std::to_array<Typical>({
    {"star", "", 32, "STAR holds a genome's index in memory: about 30 GB for human (STAR manual)"},
    {"bwa", "index", 8, "bwa index takes about 5 GB for a human genome (bwa manual)"},
    {"bwa", "", 8,
     "bwa mem holds the index in memory: about 6 GB for human, shared by its threads"},
    {"bowtie2", "", 4,
     "bowtie2 holds the index in memory: about 3.2 GB for human (bowtie2 manual)"},
    {"hisat2", "", 8, "HISAT2 holds the index in memory: 4 to 8 GB for human (HISAT2 manual)"},
    {"minimap2", "", 12, "minimap2 takes about 8 to 12 GB for reads against a human genome"},
    {"salmon", "", 8, "salmon holds the transcriptome's index in memory: a few GB for human"},
    {"kallisto", "", 4, "kallisto holds the transcriptome's index in memory: about 4 GB for human"},
    {"cellranger", "", 64,
     "Cell Ranger asks for at least 64 GB (10x Genomics' system requirements)"},
    {"fmriprep", "", 8, "fMRIPrep asks for at least 8 GB a subject (fMRIPrep documentation)"},
});

struct Depends {
  std::string_view application;
  std::string_view on;
};
constexpr auto kDepends = std::to_array<Depends>({
    {"gaussian", "%mem and %nprocshared of its input"},
    {"vasp", "the atoms, the cutoff and the k-points of its input"},
    {"gromacs", "the number of atoms"},
    {"lammps", "the number of atoms"},
    {"namd", "the number of atoms"},
    {"amber", "the number of atoms"},
    {"quantum espresso", "the atoms, the cutoff and the k-points of its input"},
    {"cp2k", "the atoms and the basis of its input"},
    {"orca", "%maxcore and the processes of its input"},
    {"nwchem", "the memory line of its input"},
    {"openfoam", "the number of cells (about 1 to 2 GB for a million)"},
    {"fluent", "the number of cells (about 1 to 2 GB for a million)"},
    {"wrf", "the number of grid points"},
    {"blast", "the size of the database, which it would hold in memory"},
    {"diamond", "the size of the database and its block size"},
    {"kraken2", "the size of the database, which it holds in memory"},
    {"trinity", "the number of reads (about 1 GB for a million pairs)"},
    {"spades", "the number of reads and the size of the genome"},
    {"alphafold", "the length of the sequence"},
});

// "64G", "50GB", "250", in GiB unless there is a unit.
std::optional<double> MemoryOption(std::string_view text) {
  std::string lower = base::ToLower(text);
  if (lower.ends_with('b')) lower.pop_back();
  double unit = kGiB;
  if (lower.ends_with('g')) lower.pop_back();
  if (lower.ends_with('m')) {
    lower.pop_back();
    unit = 1024.0 * 1024;
  }
  const auto value = base::ParseDouble(lower);
  if (!value || !(*value > 0) || *value * unit > 1e15) return std::nullopt;
  return *value * unit;
}

std::string_view ValueOf(const workload::Application& application, std::string_view option) {
  const auto& arguments = application.arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == option && i + 1 < arguments.size()) return arguments[i + 1];
    if (argument.starts_with(option) && argument.substr(option.size()).starts_with('=')) {
      return argument.substr(option.size() + 1);
    }
  }
  return {};
}

bool Has(const workload::Application& application, std::string_view argument) {
  return argument.empty() ||
         std::ranges::find(application.arguments, argument) != application.arguments.end();
}

// Programs that are told how much memory they may take.
bool TakeOption(const workload::Application& application, ApplicationNeed* need) {
  struct Option {
    std::string_view application;
    std::string_view name;
  };
  constexpr auto kOptions = std::to_array<Option>({{"trinity", "--max_memory"},
                                                   {"spades", "-m"},
                                                   {"spades", "--memory"},
                                                   {"cellranger", "--localmem"},
                                                   {"fmriprep", "--mem-gb"}});
  for (const auto& [name, option] : kOptions) {
    if (name != application.name) continue;
    const std::string_view value = ValueOf(application, option);
    const auto bytes = value.empty() ? std::nullopt : MemoryOption(value);
    if (!bytes) continue;
    // The limit counts what the program allocates; it and its helpers take some more.
    need->memory_bytes = *bytes * 1.05;
    need->memory_reason = application.name + " is told to take up to " + std::string(option) + " " +
                          std::string(value);
    return true;
  }
  return false;
}

}  // namespace

ApplicationNeed NeedOf(const workload::Application& application, std::optional<double> threads) {
  ApplicationNeed need;
  if (application.name == "gromacs") {
    const auto hours = base::ParseDouble(ValueOf(application, "-maxh"));
    if (hours && *hours > 0 && *hours < 10'000) {
      need.walltime_s = *hours * 3600;
      need.walltime_reason = "mdrun ends by itself within -maxh hours";
    }
  }
  if (TakeOption(application, &need)) return need;
  const bool sorts = application.name == "samtools" && Has(application, "sort");
  if (sorts) {
    const std::string_view option = ValueOf(application, "-m");
    const double each = option.empty() ? 0.75 * kGiB : MemoryOption(option).value_or(0.75 * kGiB);
    need.memory_bytes = threads.value_or(1) * each + kGiB;
    need.memory_reason =
        "samtools sort takes -m for each thread, 768 MiB unless it is given (samtools manual)";
    return need;
  }
  if (application.name == "fastqc") {
    need.memory_bytes = std::max(1.0, threads.value_or(1) * 0.5) * kGiB;
    need.memory_reason = "FastQC gives 250 to 512 MB to each thread (its manual)";
    return need;
  }
  for (const Typical& typical : kTypical) {
    if (typical.application != application.name || !Has(application, typical.argument)) continue;
    const bool second = application.program == "bwa-mem2";
    need.memory_bytes = (second ? 24 : typical.gib) * kGiB;
    need.memory_reason =
        second
            ? "bwa-mem2 holds an index of about 16 GB for human in memory, and more for its threads"
            : std::string(typical.reason);
    need.missing =
        "the size of the reference of " + application.name + ": a human genome is assumed";
    return need;
  }
  const auto depends =
      std::ranges::find(kDepends, std::string_view(application.name), &Depends::application);
  if (depends != kDepends.end()) {
    need.missing = "the memory of " + application.name + " depends on " + std::string(depends->on);
  }
  return need;
}

}  // namespace expanse::intelligence::predict
