// Options that ask for an amount of something: their values as settings, and what is asked for.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "workload/line_index.h"
#include "workload/sbatch/arguments.h"
#include "workload/sbatch/totals.h"
#include "workload/submission.h"

namespace expanse::workload::sbatch {

struct Amounts {
  Asked asked;
  std::vector<Setting> settings;  // in the order of the options
  std::string gpu_types;          // "a100", or several joined by ","
};

// --mem, --mem-per-cpu, --mem-per-gpu: only one of them can be given.
bool CountsMemory(OptionId id);

class AmountReader {
 public:
  // `text` is the file that the options come from.
  AmountReader(const LineIndex& lines, std::string_view text) : lines_(lines), text_(text) {}

  // False where the option asks for no amount. `written`: it stands in this component, else it is
  // one of the component before. `effective`: nothing replaces it. Refuses ("invalid_value") what
  // sbatch refuses.
  Parsed<bool> Read(const Given& given, bool written, bool effective);
  Amounts Take() { return std::move(amounts_); }

 private:
  struct CountOption;
  struct SizeOption;
  struct GpuOption;
  struct Use {  // of one option
    const Given& given;
    bool written;
    bool effective;
  };
  using Done = Parsed<bool>;

  Done ReadCount(const Use& use, const Piece& value, const CountOption& option);
  Done ReadMemory(const Use& use, const SizeOption& option);
  Done ReadTime(const Use& use);
  Done ReadNodes(const Use& use);
  Done ReadGres(const Use& use);
  Done ReadDisk(const Use& use);
  Done ReadTresPerTask(const Use& use);
  Done AddGpus(const Use& use, const Piece& list, bool gpus, const GpuOption& option);

  Setting SettingAt(const Piece& value, Quantity quantity, Per per) const;
  void Add(const Use& use, Setting setting);
  void AddType(const std::string& type);
  std::unexpected<Refusal> Invalid(const Given& given) const;

  const LineIndex& lines_;
  std::string_view text_;
  Amounts amounts_;
};

}  // namespace expanse::workload::sbatch
