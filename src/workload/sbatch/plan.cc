// PlanSbatchEdits: which values to write where, so that a script asks for what is wanted.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "workload/sbatch/sbatch.h"
#include "workload/sbatch/script.h"
#include "workload/sbatch/spelling.h"

namespace expanse::workload {
namespace {

using base::Code;
using base::Fail;
using base::Status;
using sbatch::Amount;
using sbatch::Asked;
using sbatch::MakeTotals;
using sbatch::Totals;

constexpr std::uint64_t kOneCpu = 1;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// What a part shall ask for. Absent: not asked for before, and not wanted.
struct Target {
  std::optional<std::uint64_t> cpus;
  std::optional<std::uint64_t> memory;
  std::optional<std::uint64_t> gpus;
  std::optional<std::int64_t> walltime_s;
};

std::uint64_t DivideUp(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

std::unexpected<base::Error> NoPlace(std::string message) {
  return Fail(Code::kFailedPrecondition, "patch.no_place", std::move(message));
}

std::string Join(std::string_view name, std::string_view why) {
  return std::string(name) + ": " + std::string(why);
}

// Plans the edits of one part. `asked` follows what the edited text will say.
class PartPlan {
 public:
  PartPlan(const Part& part, Asked& asked, std::vector<Edit>& edits)
      : part_(part), asked_(asked), edits_(edits) {}

  Status SetGpus(std::uint64_t target);
  Status SetCpus(std::uint64_t target);
  Status SetMemory(std::uint64_t target);
  Status SetWalltime(std::int64_t target);

 private:
  // The effective settings of a quantity that this part writes.
  std::vector<const Setting*> Written(Quantity quantity) const {
    std::vector<const Setting*> found;
    for (const Setting& setting : part_.settings)
      if (setting.quantity == quantity && setting.effective) found.push_back(&setting);
    return found;
  }

  // Nothing where rounding up comes to what is written.
  void Replace(const Setting& setting, std::string value) {
    if (value == setting.written) return;
    edits_.push_back({setting.place.begin, setting.place.end, std::move(value)});
  }

  const Insertion* FindInsertion(Quantity quantity) const {
    for (const Insertion& insertion : part_.insertions)
      if (insertion.quantity == quantity) return &insertion;
    return nullptr;
  }

  Status Insert(Quantity quantity, const std::string& value) {
    const Insertion* insertion = FindInsertion(quantity);
    if (insertion == nullptr)
      return NoPlace(Join(Name(quantity), "the script has no place for it"));
    std::string line = insertion->before;
    line.append(value).append(insertion->after);
    edits_.push_back({insertion->offset, insertion->offset, std::move(line)});
    return {};
  }

  static Status CheckKnown(const Setting& setting) {
    if (setting.value || setting.unresolved == "unlimited") return {};
    return Fail(Code::kFailedPrecondition, "patch.unresolved",
                Join(setting.name, "its value is not known (" + setting.unresolved + ")"));
  }

  const Part& part_;
  Asked& asked_;
  std::vector<Edit>& edits_;
};

// How many of what a GPU option counts per there are.
std::optional<std::uint64_t> GpuDivisor(const Asked& asked, Per per) {
  const Totals totals = MakeTotals(asked);
  switch (per) {
    case Per::kNode:
      return totals.nodes;
    case Per::kTask:
      return totals.tasks;
    case Per::kSocket:
      if (!totals.nodes || !asked.sockets.value) return std::nullopt;
      return *totals.nodes * *asked.sockets.value;
    case Per::kJob:
    case Per::kCpu:
    case Per::kGpu:
    case Per::kContainer:
      return 1;
  }
  return 1;
}

Amount<std::uint64_t>& GpuAmount(Asked& asked, Per per) {
  if (per == Per::kNode) return asked.gpus_per_node;
  if (per == Per::kTask) return asked.gpus_per_task;
  if (per == Per::kSocket) return asked.gpus_per_socket;
  return asked.gpus;
}

Status PartPlan::SetGpus(std::uint64_t target) {
  const auto written = Written(Quantity::kGpu);
  if (written.empty()) {
    asked_.gpus = {.given = true, .value = target};
    return Insert(Quantity::kGpu, std::to_string(target));
  }
  if (written.size() > 1) return NoPlace("gpu: more than one option says how many");
  const Setting& setting = *written.front();
  EXPANSE_RETURN_IF_ERROR(CheckKnown(setting));
  const auto divisor = GpuDivisor(asked_, setting.per);
  if (!divisor || *divisor == 0)
    return NoPlace(Join(setting.name, "how many times it counts is not known"));
  const std::uint64_t each = DivideUp(target, *divisor);
  GpuAmount(asked_, setting.per) = {.given = true, .value = each};
  // "gpu" and "gpu:a100" have no count yet.
  const bool has_count = !setting.written.empty() && setting.written.front() >= '0' &&
                         setting.written.front() <= '9' && setting.written != setting.gpu_type;
  const std::string count = std::to_string(each);
  Replace(setting, has_count ? count : setting.written + ":" + count);
  return {};
}

Status PartPlan::SetCpus(std::uint64_t target) {
  const auto written = Written(Quantity::kCpu);
  const Totals totals = MakeTotals(asked_);
  if (written.empty()) {
    if (!totals.tasks || totals.tasks != totals.nodes || *totals.tasks == 0)
      return NoPlace(
          "cpu: only the number of tasks says how many, and changing that changes what runs");
    const auto each = static_cast<std::uint32_t>(DivideUp(target, *totals.tasks));
    asked_.cpus_per_task = {.given = true, .value = each};
    return Insert(Quantity::kCpu, std::to_string(each));
  }
  const Setting& setting = *written.front();
  if (written.size() > 1) return NoPlace("cpu: more than one option says how many");
  EXPANSE_RETURN_IF_ERROR(CheckKnown(setting));
  const auto divisor = setting.per == Per::kTask  ? totals.tasks
                       : setting.per == Per::kGpu ? totals.gpus
                                                  : totals.nodes;
  if (!divisor || *divisor == 0)
    return NoPlace(Join(setting.name, "how many times it counts is not known"));
  const std::uint64_t each = std::max<std::uint64_t>(DivideUp(target, *divisor), 1);
  auto& amount = setting.per == Per::kTask  ? asked_.cpus_per_task
                 : setting.per == Per::kGpu ? asked_.cpus_per_gpu
                                            : asked_.cpus_per_node;
  amount.value = static_cast<std::uint32_t>(each);
  Replace(setting, std::to_string(each));
  return {};
}

Status PartPlan::SetMemory(std::uint64_t target) {
  const auto written = Written(Quantity::kMemory);
  const Totals totals = MakeTotals(asked_);
  const Setting* setting = written.empty() ? nullptr : written.front();
  if (setting != nullptr) EXPANSE_RETURN_IF_ERROR(CheckKnown(*setting));
  const Insertion* insertion = setting == nullptr ? FindInsertion(Quantity::kMemory) : nullptr;
  Per per = setting == nullptr ? Per::kNode : setting->per;
  if (insertion != nullptr && insertion->before.contains("--mem-per-cpu")) per = Per::kCpu;
  const auto divisor = per == Per::kCpu   ? totals.cpus
                       : per == Per::kGpu ? totals.gpus
                                          : totals.nodes;
  if (!divisor || *divisor == 0)
    return NoPlace("memory: how many nodes, CPUs or GPUs it is counted per is not known");
  const std::uint64_t each = DivideUp(target, *divisor);
  auto& amount = per == Per::kCpu   ? asked_.memory_per_cpu
                 : per == Per::kGpu ? asked_.memory_per_gpu
                                    : asked_.memory_per_node;
  amount = {.given = true, .value = each};
  if (setting == nullptr) {
    const std::uint64_t mib = DivideUp(each, kGiB / 1024);
    return Insert(Quantity::kMemory, sbatch::SpellMemory(each, mib % 1024 == 0 ? "1G" : "1M"));
  }
  Replace(*setting, sbatch::SpellMemory(each, setting->written == "0" ? "0G" : setting->written));
  return {};
}

Status PartPlan::SetWalltime(std::int64_t target) {
  const auto written = Written(Quantity::kWalltime);
  asked_.walltime_s = {.given = true, .value = target};
  for (const Setting& setting : part_.settings)
    if (setting.name == "--time-min" && setting.value.value_or(0) > static_cast<double>(target))
      Replace(setting, sbatch::SpellTime(target, setting.written));
  if (written.empty()) return Insert(Quantity::kWalltime, sbatch::SpellTime(target, ""));
  EXPANSE_RETURN_IF_ERROR(CheckKnown(*written.front()));
  Replace(*written.front(), sbatch::SpellTime(target, written.front()->written));
  return {};
}

base::Result<std::uint64_t> WholeAmount(const Wanted& wanted) {
  const double amount = std::ceil(wanted.amount);
  if (!(amount >= 0) || amount > 9e18)
    return Fail(Code::kInvalidArgument, "patch.amount",
                Join(Name(wanted.quantity), "no amount that can be asked for"));
  return static_cast<std::uint64_t>(amount);
}

base::Result<std::vector<Target>> MakeTargets(const sbatch::Script& script,
                                              const std::vector<Wanted>& wanted) {
  std::vector<Target> targets;
  for (const Part& part : script.submission.parts) {
    const Request& now = part.request;
    Target target;
    if (now.cpu_cores) target.cpus = static_cast<std::uint64_t>(*now.cpu_cores);
    if (now.gpu_count) target.gpus = static_cast<std::uint64_t>(*now.gpu_count);
    target.memory = now.memory_bytes;
    target.walltime_s = now.walltime_s;
    targets.push_back(target);
  }
  for (const Wanted& each : wanted) {
    if (each.part >= targets.size())
      return Fail(Code::kInvalidArgument, "patch.part", "the script has no such part");
    EXPANSE_ASSIGN_OR_RETURN(const std::uint64_t amount, WholeAmount(each));
    Target& target = targets[each.part];
    const Request& now = script.submission.parts[each.part].request;
    // What is there already stays as it is, also where a double does not hold all of its digits.
    const auto set = [&](auto& is) {
      if (!is || static_cast<double>(*is) != each.amount)
        is = static_cast<std::remove_reference_t<decltype(*is)>>(amount);
    };
    switch (each.quantity) {
      case Quantity::kCpu:
        set(target.cpus);
        if (each.amount > 0 || now.cpu_cores != 0) target.cpus = std::max(*target.cpus, kOneCpu);
        break;
      case Quantity::kMemory:
        set(target.memory);
        break;
      case Quantity::kGpu:
        set(target.gpus);
        break;
      case Quantity::kWalltime:
        set(target.walltime_s);
        break;
      case Quantity::kGpuMemory:
      case Quantity::kNodes:
      case Quantity::kTasks:
      case Quantity::kDisk:
        return NoPlace(Join(Name(each.quantity), "is not changed in batch scripts"));
    }
  }
  return targets;
}

// GPUs first, then CPUs, then memory: later ones may be counted per earlier ones.
Status PlanPart(const Part& part, const Target& target, Asked& asked, std::vector<Edit>& edits) {
  PartPlan plan(part, asked, edits);
  if (target.gpus && MakeTotals(asked).gpus.value_or(0) != *target.gpus)
    EXPANSE_RETURN_IF_ERROR(plan.SetGpus(*target.gpus));
  if (target.cpus && MakeTotals(asked).cpus != target.cpus)
    EXPANSE_RETURN_IF_ERROR(plan.SetCpus(*target.cpus));
  if (target.memory && MakeTotals(asked).memory != target.memory)
    EXPANSE_RETURN_IF_ERROR(plan.SetMemory(*target.memory));
  if (target.walltime_s && asked.walltime_s.value != target.walltime_s)
    EXPANSE_RETURN_IF_ERROR(plan.SetWalltime(*target.walltime_s));
  return {};
}

// What a component starts with when the one before has been edited.
void Inherit(const Part& part, const Asked& before, Asked& asked) {
  const auto writes = [&](std::string_view name) {
    return std::ranges::any_of(part.settings,
                               [&](const Setting& each) { return each.name == name; });
  };
  const bool own_memory = std::ranges::any_of(part.settings, [](const Setting& each) {
    return each.quantity == Quantity::kMemory && each.effective;
  });
  if (!own_memory) asked.memory_per_node = before.memory_per_node;
  if (!writes("--time")) asked.walltime_s = before.walltime_s;
}

// At least what is wanted, and more only by what rounding adds.
template <typename T>
bool Reaches(const std::optional<T>& is, const std::optional<T>& wanted, std::uint64_t slack) {
  if (!wanted || !is) return !wanted && !is;
  return *is >= *wanted && static_cast<std::uint64_t>(*is - *wanted) <= slack;
}

bool Reaches(const Request& before, const Asked& asked, const Target& target) {
  const Totals is = MakeTotals(asked);
  if (is.nodes != before.nodes || is.tasks != before.tasks) return false;
  const std::uint64_t many = std::max(
      {is.nodes.value_or(1), is.tasks.value_or(1), is.cpus.value_or(1), is.gpus.value_or(1)});
  constexpr std::uint64_t kMiB = 1 << 20;
  return Reaches(is.cpus, target.cpus, many) && Reaches(is.gpus, target.gpus, many) &&
         Reaches(is.memory, target.memory, target.memory.value_or(0) / 8 + many * 2 * kMiB) &&
         (!target.walltime_s || Reaches(asked.walltime_s.value, target.walltime_s, 60));
}

// Reads the edited text: the plan must not depend on what this code thinks the text will say.
Status Check(std::string_view text, const std::vector<Edit>& edits, const sbatch::Script& before,
             const std::vector<Target>& targets) {
  const auto edited = ApplyEdits(text, edits);
  if (!edited) return NoPlace("components of the script share the value that would be changed");
  const auto after = sbatch::ReadScript(*edited);
  if (!after)
    return Fail(Code::kFailedPrecondition, "patch.not_reached",
                "the edited script would not be read: " + after.error().message);
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (after->asked.size() != targets.size() ||
        !Reaches(before.submission.parts[i].request, after->asked[i], targets[i]))
      return Fail(Code::kFailedPrecondition, "patch.not_reached",
                  "the edited script would not ask for what is wanted");
  return {};
}

}  // namespace

base::Result<std::vector<Edit>> PlanSbatchEdits(std::string_view text, const Submission&,
                                                const std::vector<Wanted>& wanted) {
  auto script = sbatch::ReadScript(text);
  if (!script) return Fail(Code::kFailedPrecondition, "patch.not_reached", script.error().message);
  EXPANSE_ASSIGN_OR_RETURN(const std::vector<Target> targets, MakeTargets(*script, wanted));
  std::vector<Edit> edits;
  const std::vector<Part>& parts = script->submission.parts;
  std::vector<Asked> asked = script->asked;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) Inherit(parts[i], asked[i - 1], asked[i]);
    EXPANSE_RETURN_IF_ERROR(PlanPart(parts[i], targets[i], asked[i], edits));
  }
  // Lines of other schedulers count for every component: one edit is enough for all.
  std::vector<Edit> once;
  for (Edit& edit : edits)
    if (edit.begin == edit.end || std::ranges::find(once, edit) == once.end())
      once.push_back(std::move(edit));
  edits = std::move(once);
  if (!edits.empty()) EXPANSE_RETURN_IF_ERROR(Check(text, edits, *script, targets));
  return edits;
}

}  // namespace expanse::workload
