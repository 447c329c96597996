#include "workload/sbatch/amounts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "workload/sbatch/values.h"

namespace expanse::workload::sbatch {

// Options with a count as value: what it is a count of.
struct AmountReader::CountOption {
  OptionId id;
  Quantity quantity;
  Per per;
  Amount<std::uint32_t> Asked::* amount;
};

struct AmountReader::SizeOption {
  OptionId id;
  Per per;
  Amount<std::uint64_t> Asked::* amount;
};

struct AmountReader::GpuOption {
  OptionId id;
  Per per;
  Amount<std::uint64_t> Asked::* amount;
};

namespace {

// Why a value that sbatch would refuse is not known rather than wrong; empty if it is wrong.
std::string WhyUnresolved(std::string_view value) {
  if (!LooksTemplated(value)) return "";
  const std::size_t dollar = value.find('$');
  if (dollar == std::string_view::npos || value.substr(dollar).starts_with("$("))
    return dollar == std::string_view::npos ? "template" : "shell";
  std::size_t end = dollar + 1;
  if (end < value.size() && value[end] == '{') ++end;
  const std::size_t begin = end;
  const auto is_name = [](char c) {
    return base::IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  while (end < value.size() && is_name(value[end])) ++end;
  return begin == end ? "template" : "variable " + std::string(value.substr(begin, end - begin));
}

template <typename Table>
auto* Find(const Table& table, OptionId id) {
  const auto found = std::ranges::find(table, id, [](const auto& row) { return row.id; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

bool CountsMemory(OptionId id) {
  return id == OptionId::kMem || id == OptionId::kMemPerCpu || id == OptionId::kMemPerGpu;
}

Parsed<bool> AmountReader::Read(const Given& given, bool written, bool effective) {
  if (given.option == nullptr) return false;
  static constexpr std::array kCounts = {
      CountOption{OptionId::kNtasks, Quantity::kTasks, Per::kJob, &Asked::tasks},
      CountOption{OptionId::kNtasksPerNode, Quantity::kTasks, Per::kNode, &Asked::tasks_per_node},
      CountOption{OptionId::kNtasksPerGpu, Quantity::kTasks, Per::kGpu, &Asked::tasks_per_gpu},
      CountOption{OptionId::kCpusPerTask, Quantity::kCpu, Per::kTask, &Asked::cpus_per_task},
      CountOption{OptionId::kCpusPerGpu, Quantity::kCpu, Per::kGpu, &Asked::cpus_per_gpu},
      CountOption{OptionId::kMinCpus, Quantity::kCpu, Per::kNode, &Asked::cpus_per_node},
  };
  static constexpr std::array kMemories = {
      SizeOption{OptionId::kMem, Per::kNode, &Asked::memory_per_node},
      SizeOption{OptionId::kMemPerCpu, Per::kCpu, &Asked::memory_per_cpu},
      SizeOption{OptionId::kMemPerGpu, Per::kGpu, &Asked::memory_per_gpu},
  };
  static constexpr std::array kGpus = {
      GpuOption{OptionId::kGpus, Per::kJob, &Asked::gpus},
      GpuOption{OptionId::kGpusPerNode, Per::kNode, &Asked::gpus_per_node},
      GpuOption{OptionId::kGpusPerTask, Per::kTask, &Asked::gpus_per_task},
      GpuOption{OptionId::kGpusPerSocket, Per::kSocket, &Asked::gpus_per_socket},
  };
  struct Handler {
    OptionId id;
    Done (AmountReader::*read)(const Use&);
  };
  static constexpr std::array kHandlers = {
      Handler{OptionId::kTime, &AmountReader::ReadTime},
      Handler{OptionId::kTimeMin, &AmountReader::ReadTime},
      Handler{OptionId::kNodes, &AmountReader::ReadNodes},
      Handler{OptionId::kGres, &AmountReader::ReadGres},
      Handler{OptionId::kTresPerTask, &AmountReader::ReadTresPerTask},
      Handler{OptionId::kTmp, &AmountReader::ReadDisk},
  };
  const OptionId id = given.option->id;
  const Use use{given, written, effective};
  if (const auto* count = Find(kCounts, id)) return ReadCount(use, given.value, *count);
  if (const auto* memory = Find(kMemories, id)) return ReadMemory(use, *memory);
  if (const auto* gpu = Find(kGpus, id)) return AddGpus(use, given.value, /*gpus=*/true, *gpu);
  if (const auto* handler = Find(kHandlers, id)) return (this->*handler->read)(use);
  return false;
}

Setting AmountReader::SettingAt(const Piece& value, Quantity quantity, Per per) const {
  Setting setting;
  setting.quantity = quantity;
  setting.per = per;
  const std::size_t begin = value.begin_offset();
  setting.place = lines_.PlaceOf(begin, value.end);
  setting.written = std::string(text_.substr(begin, value.end - begin));
  return setting;
}

void AmountReader::Add(const Use& use, Setting setting) {
  if (!use.written) return;
  const std::string& written = use.given.written;
  setting.name = written.starts_with('#') ? written : "--" + std::string(use.given.option->name);
  setting.effective = use.effective;
  amounts_.settings.push_back(std::move(setting));
}

std::unexpected<Refusal> AmountReader::Invalid(const Given& given) const {
  const std::size_t at = given.value.begin_offset();
  const Place place = lines_.PlaceOf(at, at);
  const std::string& value = given.value.text;
  std::string message = value.empty() ? given.written + " has no value"
                                      : "\"" + value + "\" is no value of " + given.written;
  // "-time=1:00:00" is "-t" with the value "ime=1:00:00".
  if (given.written.size() == 2 &&
      given.option->name.starts_with(given.written.substr(1) + value.substr(0, value.find('='))))
    message += "; a long option begins with two dashes: --" + std::string(given.option->name);
  return std::unexpected(Refusal{place.line, place.column, "invalid_value", std::move(message)});
}

Parsed<bool> AmountReader::ReadCount(const Use& use, const Piece& value,
                                     const CountOption& option) {
  Setting setting = SettingAt(value, option.quantity, option.per);
  const auto count = ParseCount(value.text);
  if (count) setting.value = *count;
  if (!count && (setting.unresolved = WhyUnresolved(value.text)).empty()) return Invalid(use.given);
  if (use.given.times != 1) setting.per = Per::kNode;
  std::uint32_t total = 0;
  const bool fits = count && !__builtin_mul_overflow(*count, use.given.times, &total);
  if (use.effective)
    amounts_.asked.*
        option.amount = {.given = true, .value = fits ? std::optional(total) : std::nullopt};
  Add(use, std::move(setting));
  return true;
}

Parsed<bool> AmountReader::ReadMemory(const Use& use, const SizeOption& option) {
  const Piece& value = use.given.value;
  Setting setting = SettingAt(value, Quantity::kMemory, option.per);
  const auto bytes = ParseMemory(value.text);
  if (bytes) setting.value = static_cast<double>(*bytes);
  if (!bytes && (setting.unresolved = WhyUnresolved(value.text)).empty()) return Invalid(use.given);
  if (use.effective) amounts_.asked.*option.amount = {.given = true, .value = bytes};
  Add(use, std::move(setting));
  return true;
}

Parsed<bool> AmountReader::ReadDisk(const Use& use) {
  const Piece& value = use.given.value;
  Setting setting = SettingAt(value, Quantity::kDisk, Per::kNode);
  const auto bytes = ParseMemory(value.text);
  if (bytes) setting.value = static_cast<double>(*bytes);
  if (!bytes && (setting.unresolved = WhyUnresolved(value.text)).empty()) return Invalid(use.given);
  Add(use, std::move(setting));
  return true;
}

Parsed<bool> AmountReader::ReadTime(const Use& use) {
  const Piece& value = use.given.value;
  Setting setting = SettingAt(value, Quantity::kWalltime, Per::kJob);
  const auto time = ParseTime(value.text);
  if (time && time->unlimited) setting.unresolved = "unlimited";
  if (time && !time->unlimited) setting.value = static_cast<double>(time->seconds);
  if (!time && (setting.unresolved = WhyUnresolved(value.text)).empty()) return Invalid(use.given);
  // --time-min only allows the scheduler to lower --time.
  Use shown = use;
  if (use.given.option->id == OptionId::kTimeMin) shown.effective = false;
  if (shown.effective) {
    amounts_.asked.walltime_s = {.given = true, .value = {}};
    if (time && !time->unlimited) amounts_.asked.walltime_s.value = time->seconds;
  }
  Add(shown, std::move(setting));
  return true;
}

Parsed<bool> AmountReader::ReadNodes(const Use& use) {
  const Piece& value = use.given.value;
  const auto nodes = ParseNodes(value.text);
  Setting setting = SettingAt(nodes ? value.Part(nodes->min_begin, nodes->min_end) : value,
                              Quantity::kNodes, Per::kJob);
  if (nodes) setting.value = nodes->min;
  if (!nodes && (setting.unresolved = WhyUnresolved(value.text)).empty()) return Invalid(use.given);
  if (use.effective) {
    amounts_.asked.nodes_min = {.given = true, .value = {}};
    amounts_.asked.nodes_max = {.given = true, .value = {}};
    if (nodes) {
      amounts_.asked.nodes_min.value = nodes->min;
      amounts_.asked.nodes_max.value = nodes->max;
    }
  }
  Add(use, std::move(setting));
  return true;
}

Parsed<bool> AmountReader::ReadGres(const Use& use) {
  if (base::ToLower(use.given.value.text) == "none") return true;
  static constexpr GpuOption kOption{OptionId::kGres, Per::kNode, &Asked::gpus_per_node};
  return AddGpus(use, use.given.value, /*gpus=*/false, kOption);
}

// "2", "a100:2", "a100:1,v100:1" where `gpus`; else "gpu:a100:2,shard:4".
Parsed<bool> AmountReader::AddGpus(const Use& use, const Piece& list, bool gpus,
                                   const GpuOption& option) {
  auto& amount = amounts_.asked.*option.amount;
  if (gpus && list.text.empty()) return true;  // "--gpus=" asks for none
  const auto items = ParseGres(list.text, gpus);
  // Only slurmctld looks at these lists, so sbatch takes any that another one replaces.
  if (!items && !use.effective) return true;
  if (!items) {
    Setting setting = SettingAt(list, Quantity::kGpu, option.per);
    if ((setting.unresolved = WhyUnresolved(list.text)).empty()) return Invalid(use.given);
    if (use.effective) amount = {.given = true, .value = {}};
    Add(use, std::move(setting));
    return true;
  }
  std::map<std::string_view, std::uint64_t> counts;  // of each type the greatest
  bool any = false;
  bool known = true;
  for (const GresItem& item : *items) {
    if (!item.name.empty() && item.name != "gpu") continue;
    any = true;
    Setting setting =
        SettingAt(list.Part(item.count ? item.count_begin : item.begin, item.count_end),
                  Quantity::kGpu, option.per);
    setting.gpu_type = item.type;
    // A type that a template fills in is still one; a count in its place is not known.
    if (!item.count && LooksTemplated(item.type)) {
      setting.unresolved = WhyUnresolved(item.type);
      known = false;
    } else {
      setting.value = static_cast<double>(item.count.value_or(1));
      std::uint64_t& count = counts[item.type];
      count = std::max(count, item.count.value_or(1));
    }
    if (use.effective) AddType(setting.gpu_type);
    Add(use, std::move(setting));
  }
  // --gpus-per-node and --gres=gpu say the same; the greater counts.
  if (use.effective && any) {
    const bool was_known = !amount.unknown();
    amount.given = true;
    std::uint64_t sum = 0;
    for (const auto& [type, count] : counts) sum += count;
    if (known && was_known)
      amount.value = std::max(sum, amount.value.value_or(0));
    else
      amount.value.reset();
  }
  return true;
}

void AmountReader::AddType(const std::string& type) {
  if (type.empty()) return;
  constexpr std::size_t kMaxTypes = 1024;  // bytes
  std::string& types = amounts_.gpu_types;
  if (types.size() + type.size() > kMaxTypes) return;
  const auto known = base::Split(types, ',');
  if (std::ranges::find(known, type) != known.end()) return;
  types += (types.empty() ? "" : ",") + type;
}

// "cpu=4,gres/gpu:a100=2", "gres:gpu:1": 23.02 and later.
Parsed<bool> AmountReader::ReadTresPerTask(const Use& use) {
  static constexpr GpuOption kGpus{OptionId::kTresPerTask, Per::kTask, &Asked::gpus_per_task};
  static constexpr CountOption kCpus{OptionId::kTresPerTask, Quantity::kCpu, Per::kTask,
                                     &Asked::cpus_per_task};
  const Piece& value = use.given.value;
  std::size_t at = 0;
  for (const std::string_view item : base::Split(value.text, ',')) {
    const Piece piece = value.Part(at, at + item.size());
    at += item.size() + 1;
    const std::size_t mark = item.find_first_of("=:");
    Done read = true;
    if (item.starts_with("gres"))
      read = AddGpus(use, piece, /*gpus=*/false, kGpus);
    else if (item.substr(0, mark) == "cpu" && mark != std::string_view::npos)
      read = ReadCount(use, piece.From(mark + 1), kCpus);
    if (!read) return read;
  }
  return true;
}

}  // namespace expanse::workload::sbatch
