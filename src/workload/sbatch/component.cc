#include "workload/sbatch/component.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "workload/sbatch/values.h"

namespace expanse::workload::sbatch {
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

// Options with a count as value: what it is a count of.
struct CountOption {
  OptionId id;
  Quantity quantity;
  Per per;
  Amount<std::uint32_t> Asked::* amount;
};
constexpr std::array kCounts = {
    CountOption{OptionId::kNtasks, Quantity::kTasks, Per::kJob, &Asked::tasks},
    CountOption{OptionId::kNtasksPerNode, Quantity::kTasks, Per::kNode, &Asked::tasks_per_node},
    CountOption{OptionId::kNtasksPerGpu, Quantity::kTasks, Per::kGpu, &Asked::tasks_per_gpu},
    CountOption{OptionId::kCpusPerTask, Quantity::kCpu, Per::kTask, &Asked::cpus_per_task},
    CountOption{OptionId::kCpusPerGpu, Quantity::kCpu, Per::kGpu, &Asked::cpus_per_gpu},
    CountOption{OptionId::kMinCpus, Quantity::kCpu, Per::kNode, &Asked::cpus_per_node},
};

struct MemoryOption {
  OptionId id;
  Per per;
  Amount<std::uint64_t> Asked::* amount;
};
constexpr std::array kMemories = {
    MemoryOption{OptionId::kMem, Per::kNode, &Asked::memory_per_node},
    MemoryOption{OptionId::kMemPerCpu, Per::kCpu, &Asked::memory_per_cpu},
    MemoryOption{OptionId::kMemPerGpu, Per::kGpu, &Asked::memory_per_gpu},
};

struct GpuOption {
  OptionId id;
  Per per;
  Amount<std::uint64_t> Asked::* amount;
};
constexpr std::array kGpus = {
    GpuOption{OptionId::kGpus, Per::kJob, &Asked::gpus},
    GpuOption{OptionId::kGpusPerNode, Per::kNode, &Asked::gpus_per_node},
    GpuOption{OptionId::kGpusPerTask, Per::kTask, &Asked::gpus_per_task},
    GpuOption{OptionId::kGpusPerSocket, Per::kSocket, &Asked::gpus_per_socket},
};

template <typename Table>
auto* Find(const Table& table, OptionId id) {
  const auto found = std::ranges::find(table, id, [](const auto& row) { return row.id; });
  return found == table.end() ? nullptr : &*found;
}

class Reader {
 public:
  Reader(const std::vector<Given>& given, const std::vector<Given>& carried, const LineIndex& lines,
         std::string_view text, std::vector<Note>& notes)
      : given_(given), carried_(carried), lines_(lines), text_(text), notes_(notes) {}

  Parsed<ComponentReading> Read() {
    if (auto checked = CheckExclusions(); !checked) return std::unexpected(checked.error());
    for (std::size_t i = 0; i < carried_.size(); ++i)
      if (IsLast(carried_, i) && !Replaced(carried_[i]))
        if (auto read = ReadOption(carried_[i], /*written=*/false, /*effective=*/true); !read)
          return std::unexpected(read.error());
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (auto read = ReadOption(given_[i], /*written=*/true, IsLast(given_, i)); !read)
        return std::unexpected(read.error());
    Finish();
    return std::move(reading_);
  }

 private:
  static bool IsLast(const std::vector<Given>& all, std::size_t at) {
    return std::none_of(all.begin() + static_cast<std::ptrdiff_t>(at) + 1, all.end(),
                        [&](const Given& later) { return Same(later, all[at]); });
  }

  // Two spellings of one option are the same.
  static bool Same(const Given& a, const Given& b) {
    if (a.option == nullptr || b.option == nullptr)
      return a.option == b.option && a.written == b.written;
    if (a.option->id != OptionId::kOther) return a.option->id == b.option->id;
    return a.option == b.option || (a.option->letter != 0 && a.option->letter == b.option->letter);
  }

  bool Replaced(const Given& earlier) const {
    // What says how memory is counted replaces the other ways.
    const bool memory = earlier.option != nullptr && Find(kMemories, earlier.option->id) != nullptr;
    return std::ranges::any_of(given_, [&](const Given& later) {
      return Same(later, earlier) ||
             (memory && later.option != nullptr && Find(kMemories, later.option->id) != nullptr);
    });
  }

  std::unexpected<Refusal> Refuse(const Given& given, std::string reason, std::string message) {
    const std::size_t at = given.has_value ? given.value.begin_offset() : given.at;
    const Place place = lines_.PlaceOf(at, at);
    return std::unexpected(
        Refusal{place.line, place.column, std::move(reason), std::move(message)});
  }

  Parsed<bool> CheckExclusions() {
    const Given* memory = nullptr;
    const Given* cpus = nullptr;
    for (const Given& given : given_) {
      if (given.option == nullptr) continue;
      const OptionId id = given.option->id;
      if (Find(kMemories, id) != nullptr) {
        if (memory != nullptr && memory->option->id != id)
          return Refuse(given, "exclusive_options",
                        "--mem, --mem-per-cpu and --mem-per-gpu exclude each other");
        memory = &given;
      }
      if (id == OptionId::kCpusPerTask || id == OptionId::kCpusPerGpu) {
        if (cpus != nullptr && cpus->option->id != id)
          return Refuse(given, "exclusive_options",
                        "--cpus-per-task and --cpus-per-gpu exclude each other");
        cpus = &given;
      }
    }
    return true;
  }

  // Adds the setting of a value, if it is one of this component.
  void AddSetting(const Given& given, bool written, bool effective, Setting setting) {
    if (!written) return;
    setting.name =
        given.written.starts_with('#') ? given.written : "--" + std::string(given.option->name);
    setting.effective = effective;
    reading_.part.settings.push_back(std::move(setting));
  }

  Setting SettingAt(const Piece& value, Quantity quantity, Per per) {
    Setting setting;
    setting.quantity = quantity;
    setting.per = per;
    const std::size_t begin = value.begin_offset();
    setting.place = lines_.PlaceOf(begin, value.end);
    setting.written = std::string(text_.substr(begin, value.end - begin));
    return setting;
  }

  Parsed<bool> Invalid(const Given& given) {
    return Refuse(given, "invalid_value",
                  "\"" + given.value.text + "\" is no value of " + given.written);
  }

  Parsed<bool> ReadOption(const Given& given, bool written, bool effective) {
    if (given.option == nullptr) return true;
    if (effective && !given.option->reset) reading_.carried.push_back(given);
    const OptionId id = given.option->id;
    if (const auto* count = Find(kCounts, id)) return ReadCount(given, *count, written, effective);
    if (const auto* memory = Find(kMemories, id))
      return ReadMemory(given, *memory, written, effective);
    if (const auto* gpu = Find(kGpus, id)) return ReadGpus(given, *gpu, written, effective);
    struct Handler {
      OptionId id;
      Parsed<bool> (Reader::*read)(const Given&, bool, bool);
    };
    static constexpr std::array kHandlers = {
        Handler{OptionId::kTime, &Reader::ReadTime},
        Handler{OptionId::kTimeMin, &Reader::ReadTime},
        Handler{OptionId::kNodes, &Reader::ReadNodes},
        Handler{OptionId::kGres, &Reader::ReadGres},
        Handler{OptionId::kTresPerTask, &Reader::ReadTresPerTask},
        Handler{OptionId::kTmp, &Reader::ReadDisk},
    };
    if (const Handler* handler = Find(kHandlers, id))
      return (this->*handler->read)(given, written, effective);
    if (effective) ReadOther(given);
    return true;
  }

  Parsed<bool> ReadCount(const Given& given, const CountOption& option, bool written,
                         bool effective) {
    Setting setting = SettingAt(given.value, option.quantity, option.per);
    const auto count = ParseCount(given.value.text);
    if (count) setting.value = *count;
    if (!count && (setting.unresolved = WhyUnresolved(given.value.text)).empty())
      return Invalid(given);
    if (given.times != 1) setting.per = Per::kNode;
    std::optional<std::uint32_t> total = count;
    if (count && __builtin_mul_overflow(*count, given.times, &*total)) total.reset();
    if (effective) reading_.asked.*option.amount = {.given = true, .value = total};
    AddSetting(given, written, effective, std::move(setting));
    return true;
  }

  Parsed<bool> ReadMemory(const Given& given, const MemoryOption& option, bool written,
                          bool effective) {
    Setting setting = SettingAt(given.value, Quantity::kMemory, option.per);
    const auto bytes = ParseMemory(given.value.text);
    if (bytes) setting.value = static_cast<double>(*bytes);
    if (!bytes && (setting.unresolved = WhyUnresolved(given.value.text)).empty())
      return Invalid(given);
    if (effective) reading_.asked.*option.amount = {.given = true, .value = bytes};
    AddSetting(given, written, effective, std::move(setting));
    return true;
  }

  Parsed<bool> ReadDisk(const Given& given, bool written, bool effective) {
    Setting setting = SettingAt(given.value, Quantity::kDisk, Per::kNode);
    const auto bytes = ParseMemory(given.value.text);
    if (bytes) setting.value = static_cast<double>(*bytes);
    if (!bytes && (setting.unresolved = WhyUnresolved(given.value.text)).empty())
      return Invalid(given);
    AddSetting(given, written, effective, std::move(setting));
    return true;
  }

  Parsed<bool> ReadTime(const Given& given, bool written, bool effective) {
    Setting setting = SettingAt(given.value, Quantity::kWalltime, Per::kJob);
    const auto time = ParseTime(given.value.text);
    if (time && time->unlimited) setting.unresolved = "unlimited";
    if (time && !time->unlimited) setting.value = static_cast<double>(time->seconds);
    if (!time && (setting.unresolved = WhyUnresolved(given.value.text)).empty())
      return Invalid(given);
    // --time-min only allows the scheduler to lower --time.
    if (given.option->id == OptionId::kTimeMin) effective = false;
    if (effective)
      reading_.asked.walltime_s = {
          .given = true,
          .value = time && !time->unlimited ? std::optional(time->seconds) : std::nullopt};
    AddSetting(given, written, effective, std::move(setting));
    return true;
  }

  Parsed<bool> ReadNodes(const Given& given, bool written, bool effective) {
    const auto nodes = ParseNodes(given.value.text);
    const Piece place = nodes ? given.value.Part(nodes->min_begin, nodes->min_end) : given.value;
    Setting setting = SettingAt(place, Quantity::kNodes, Per::kJob);
    if (nodes) setting.value = nodes->min;
    if (!nodes && (setting.unresolved = WhyUnresolved(given.value.text)).empty())
      return Invalid(given);
    if (effective) {
      reading_.asked.nodes_min = {.given = true, .value = {}};
      reading_.asked.nodes_max = {.given = true, .value = {}};
      if (nodes) {
        reading_.asked.nodes_min.value = nodes->min;
        reading_.asked.nodes_max.value = nodes->max;
      }
    }
    AddSetting(given, written, effective, std::move(setting));
    return true;
  }

  // A list of GPUs: "2", "a100:2", "a100:1,v100:1".
  Parsed<bool> ReadGpus(const Given& given, const GpuOption& option, bool written, bool effective) {
    const auto items = ParseGres(given.value.text, /*gpus=*/true);
    return AddGpuItems(given, items, option, written, effective);
  }

  Parsed<bool> ReadGres(const Given& given, bool written, bool effective) {
    const std::string lower = base::ToLower(given.value.text);
    if (lower == "none") return true;
    constexpr GpuOption kGresOption{OptionId::kGres, Per::kNode, &Asked::gpus_per_node};
    const auto items = ParseGres(given.value.text, /*gpus=*/false);
    return AddGpuItems(given, items, kGresOption, written, effective);
  }

  Parsed<bool> AddGpuItems(const Given& given, const std::optional<std::vector<GresItem>>& items,
                           const GpuOption& option, bool written, bool effective) {
    if (!items) {
      Setting setting = SettingAt(given.value, Quantity::kGpu, option.per);
      if ((setting.unresolved = WhyUnresolved(given.value.text)).empty()) return Invalid(given);
      if (effective) (reading_.asked.*option.amount) = {.given = true, .value = {}};
      AddSetting(given, written, effective, std::move(setting));
      return true;
    }
    std::optional<std::uint64_t> sum;
    for (const GresItem& item : *items) {
      if (!item.name.empty() && item.name != "gpu") continue;
      // A type that a template fills in is still one; a count in its place would not be known.
      const std::string type(item.type);
      const bool unknown = !item.count && LooksTemplated(type);
      const Piece count =
          given.value.Part(item.count ? item.count_begin : item.begin, item.count_end);
      Setting setting = SettingAt(count, Quantity::kGpu, option.per);
      setting.gpu_type = type;
      if (unknown) {
        setting.unresolved = WhyUnresolved(type);
        if (effective) (reading_.asked.*option.amount) = {.given = true, .value = {}};
        AddSetting(given, written, effective, std::move(setting));
        return true;
      }
      setting.value = static_cast<double>(item.count.value_or(1));
      sum = sum.value_or(0) + item.count.value_or(1);
      if (effective && !type.empty()) AddType(type);
      AddSetting(given, written, effective, std::move(setting));
    }
    auto& amount = reading_.asked.*option.amount;
    // --gpus-per-node and --gres=gpu say the same; the greater counts.
    if (effective && sum && !amount.unknown())
      amount = {.given = true, .value = std::max(*sum, amount.value.value_or(0))};
    return true;
  }

  void AddType(const std::string& type) {
    std::string& types = reading_.part.request.gpu_type;
    if (types.empty())
      types = type;
    else if (const auto known = base::Split(types, ',');
             std::ranges::find(known, type) == known.end())
      types += "," + type;
  }

  // "cpu=4,gres/gpu:a100=2", "gres:gpu:1": 23.02 and later.
  Parsed<bool> ReadTresPerTask(const Given& given, bool written, bool effective) {
    std::size_t at = 0;
    for (const std::string_view item : base::Split(given.value.text, ',')) {
      const Piece piece = given.value.Part(at, at + item.size());
      at += item.size() + 1;
      if (item.starts_with("gres")) {
        Given one = given;
        one.value = piece;
        constexpr GpuOption kOption{OptionId::kTresPerTask, Per::kTask, &Asked::gpus_per_task};
        if (auto read = AddGpuItems(one, ParseGres(piece.text, /*gpus=*/false), kOption, written,
                                    effective);
            !read)
          return read;
        continue;
      }
      const std::size_t mark = item.find_first_of("=:");
      if (item.substr(0, mark) != "cpu" || mark == std::string_view::npos) continue;
      Given one = given;
      one.value = piece.From(mark + 1);
      constexpr CountOption kOption{OptionId::kTresPerTask, Quantity::kCpu, Per::kTask,
                                    &Asked::cpus_per_task};
      if (auto read = ReadCount(one, kOption, written, effective); !read) return read;
    }
    return true;
  }

  // Options without a quantity of their own.
  void ReadOther(const Given& given) {
    struct Handler {
      OptionId id;
      void (*read)(Reader&, const Given&);
    };
    static constexpr std::array kHandlers = {
        Handler{OptionId::kJobName,
                [](Reader& r, const Given& g) { r.reading_.part.workload = g.value.text; }},
        Handler{OptionId::kArray,
                [](Reader& r, const Given& g) {
                  r.reading_.part.array_size = ParseArraySize(g.value.text);
                }},
        Handler{OptionId::kComment, [](Reader& r, const Given& g) { r.ReadComment(g.value.text); }},
        Handler{OptionId::kOutput,
                [](Reader& r, const Given& g) { r.reading_.outputs.push_back(g.value.text); }},
        Handler{OptionId::kError,
                [](Reader& r, const Given& g) { r.reading_.outputs.push_back(g.value.text); }},
        Handler{OptionId::kInput,
                [](Reader& r, const Given& g) { r.reading_.input = g.value.text; }},
        Handler{OptionId::kChdir,
                [](Reader& r, const Given& g) { r.reading_.directory = g.value.text; }},
        Handler{OptionId::kExport, [](Reader& r, const Given& g) { r.ReadExport(g.value.text); }},
        Handler{OptionId::kExclusive,
                [](Reader& r, const Given& g) {
                  r.reading_.asked.exclusive = !g.has_value || g.value.text == "exclusive";
                }},
        Handler{OptionId::kOvercommit,
                [](Reader& r, const Given&) { r.reading_.asked.overcommit = true; }},
        Handler{OptionId::kSocketsPerNode,
                [](Reader& r, const Given& g) { r.ReadGeometry(g.value.text, {&Asked::sockets}); }},
        Handler{OptionId::kCoresPerSocket,
                [](Reader& r, const Given& g) { r.ReadGeometry(g.value.text, {&Asked::cores}); }},
        Handler{OptionId::kThreadsPerCore,
                [](Reader& r, const Given& g) { r.ReadGeometry(g.value.text, {&Asked::threads}); }},
        Handler{OptionId::kExtraNodeInfo,
                [](Reader& r, const Given& g) {
                  r.reading_.asked.geometry = true;
                  r.ReadGeometry(g.value.text, {&Asked::sockets, &Asked::cores, &Asked::threads});
                }},
    };
    if (const Handler* handler = Find(kHandlers, given.option->id)) handler->read(*this, given);
  }

  // "2", "2:4:1", "*:4": fields of sockets, cores and threads; the least of a range.
  void ReadGeometry(std::string_view value,
                    std::initializer_list<Amount<std::uint32_t> Asked::*> fields) {
    const auto pieces = base::Split(value, ':');
    std::size_t i = 0;
    for (const auto field : fields) {
      if (i == pieces.size()) return;
      const std::string_view piece = pieces[i++];
      if (piece == "*") continue;
      reading_.asked.*
          field = {.given = true, .value = ParseCount(piece.substr(0, piece.find('-')))};
    }
  }

  // "key=value;key2=value2": pairs that people label jobs with.
  void ReadComment(std::string_view value) {
    for (const std::string_view pair : base::Split(value, ';')) {
      const std::size_t equals = pair.find('=');
      const std::string_view key = base::Trim(pair.substr(0, equals));
      if (equals == std::string_view::npos || key.empty()) continue;
      reading_.part.annotations[std::string(key)] = base::Trim(pair.substr(equals + 1));
    }
  }

  // "ALL,OMP_NUM_THREADS=4,MODE": pairs with a literal value.
  void ReadExport(std::string_view value) {
    for (const std::string_view pair : base::Split(value, ',')) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || equals == 0) continue;
      if (LooksTemplated(pair.substr(equals + 1))) continue;
      reading_.part.environment[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    }
  }

  void Finish() {
    std::ranges::stable_sort(reading_.part.settings, {},
                             [](const Setting& setting) { return setting.place.begin; });
  }

  const std::vector<Given>& given_;
  const std::vector<Given>& carried_;
  const LineIndex& lines_;
  std::string_view text_;
  std::vector<Note>& notes_;
  ComponentReading reading_;
};

}  // namespace

Parsed<ComponentReading> ReadComponent(const std::vector<Given>& given,
                                       const std::vector<Given>& carried, const LineIndex& lines,
                                       std::string_view text, std::vector<Note>& notes) {
  return Reader(given, carried, lines, text, notes).Read();
}

}  // namespace expanse::workload::sbatch
