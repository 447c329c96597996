#include "collect/gpu/smi_csv.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace expanse::collect {
namespace {

// NVML and DCGM mark "no value" by numbers at the end of a type's range: 0x7ffffff0 and following
// for 32 bits, 0x7ffffffffffffff0 for 64, 2^47 for floating point; and all bits set.
constexpr double kFloatBlank = 140737488355328.0;
constexpr double kInt32Blank = 2147483632.0;
constexpr double kAllBits32 = 4294967295.0;

constexpr double kHighestPercent = 100;
constexpr double kHighestTemperature = 250;
constexpr double kHighestPower = 20'000;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]", "[Insufficient Permissions]",
// "N/A", "ERR!", and nothing at all.
bool IsUnknown(std::string_view cell) {
  return cell.empty() || cell.front() == '[' || cell == "N/A" || cell == "ERR!" ||
         cell == "Unknown" || cell == "Not Supported" || cell == "Unknown Error" ||
         cell == "GPU is lost";
}

bool IsBlankNumber(double value) {
  return !(value < kFloatBlank) || (value >= kInt32Blank && value < kInt32Blank + 4) ||
         value == kAllBits32;
}

std::optional<double> ScaleOf(std::string_view unit) {
  struct Unit {
    std::string_view name;
    double scale;
  };
  constexpr double kKi = 1024;
  static constexpr std::array<Unit, 15> kUnits = {{{"", 1},
                                                   {"%", 1},
                                                   {"W", 1},
                                                   {"mW", 1e-3},
                                                   {"C", 1},
                                                   {"MHz", 1},
                                                   {"GHz", 1e3},
                                                   {"B", 1},
                                                   {"KiB", kKi},
                                                   {"KB", kKi},
                                                   {"MiB", kKi * kKi},
                                                   {"MB", kKi * kKi},
                                                   {"GiB", kKi * kKi * kKi},
                                                   {"GB", kKi * kKi * kKi},
                                                   {"bytes", 1}}};
  const auto at = std::ranges::find(kUnits, unit, &Unit::name);
  if (at == kUnits.end()) return std::nullopt;
  return at->scale;
}

std::optional<double> Within(std::optional<double> value, double most) {
  if (!value || *value > most) return std::nullopt;
  return value;
}

std::string Text(std::string_view cell) {
  return IsUnknown(cell) ? std::string() : std::string(cell);
}

}  // namespace

std::optional<double> ParseSmiValue(std::string_view cell, std::string_view unit) {
  cell = base::Trim(cell);
  if (IsUnknown(cell)) return std::nullopt;
  if (cell.starts_with("0x") || cell.starts_with("0X")) {
    std::uint64_t bits = 0;
    const char* last = cell.data() + cell.size();
    const auto [end, error] = std::from_chars(cell.data() + 2, last, bits, 16);
    if (error != std::errc() || end != last || IsBlankNumber(static_cast<double>(bits)))
      return std::nullopt;
    return static_cast<double>(bits);
  }
  double value = 0;
  const char* last = cell.data() + cell.size();
  const auto [end, error] = std::from_chars(cell.data(), last, value, std::chars_format::fixed);
  if (error != std::errc() || value < 0 || IsBlankNumber(value)) return std::nullopt;
  const std::string_view own_unit =
      base::Trim(cell.substr(static_cast<std::size_t>(end - cell.data())));
  const auto scale = ScaleOf(own_unit.empty() ? unit : own_unit);
  if (!scale) return std::nullopt;
  return value * *scale;
}

SmiNotice ClassifySmiText(std::string_view text) {
  using enum SmiNotice::Kind;
  text = base::Trim(text);
  SmiNotice notice{kMalformed, std::string(text.substr(0, 500))};
  if (Contains(text, "is not a valid field to query")) {
    const auto open = text.find('"');
    const auto close = text.find('"', open + 1);
    if (open != std::string_view::npos && close != std::string_view::npos) {
      return {kBadField, std::string(text.substr(open + 1, close - open - 1))};
    }
  }
  if (Contains(text, "No devices were found") || Contains(text, "No devices found"))
    notice.kind = kNoDevices;
  if (Contains(text, "Insufficient Permissions")) notice.kind = kNoPermission;
  if (Contains(text, "NVIDIA-SMI has failed") || Contains(text, "Failed to initialize NVML") ||
      Contains(text, "Driver/library version mismatch") ||
      Contains(text, "Unable to determine the device handle") || Contains(text, "GPU is lost") ||
      Contains(text, "couldn't communicate with the NVIDIA driver")) {
    notice.kind = kDriverError;
  }
  return notice;
}

SmiCsvParser::Column SmiCsvParser::ColumnOf(std::string_view name) {
  struct Known {
    std::string_view name;
    Column column;
  };
  using enum Column;
  // Both spellings where the driver has an alias or has renamed the field.
  static constexpr auto kKnown = std::to_array<Known>({
      {"uuid", kUuid},
      {"gpu_uuid", kUuid},
      {"index", kIndex},
      {"name", kName},
      {"gpu_name", kName},
      {"pci.bus_id", kBusId},
      {"gpu_bus_id", kBusId},
      {"mig.mode.current", kMig},
      {"utilization.gpu", kUtil},
      {"utilization.memory", kMemoryUtil},
      {"memory.used", kMemoryUsed},
      {"memory.total", kMemoryTotal},
      {"power.draw", kPower},
      {"enforced.power.limit", kPowerLimit},
      {"temperature.gpu", kTemperature},
      {"temperature.memory", kMemoryTemperature},
      {"clocks.current.sm", kSmClock},
      {"clocks.sm", kSmClock},
      {"clocks.current.memory", kMemoryClock},
      {"clocks.mem", kMemoryClock},
      {"clocks_event_reasons.active", kThrottle},
      {"clocks_throttle_reasons.active", kThrottle},
      {"ecc.errors.uncorrected.volatile.total", kEcc},
      {"pid", kPid},
      {"process_name", kProcessName},
      {"used_gpu_memory", kProcessMemory},
      {"used_memory", kProcessMemory},
  });
  const auto at = std::ranges::find(kKnown, name, &Known::name);
  return at == kKnown.end() ? kOther : at->column;
}

bool SmiCsvParser::Has(Column column) const {
  return std::ranges::find(head_, column, &Head::column) != head_.end();
}

bool SmiCsvParser::TakeHeader(const std::vector<std::string_view>& cells) {
  // No value is spelled like the name of these fields.
  const bool header = std::ranges::any_of(cells, [](std::string_view cell) {
    return cell == "uuid" || cell == "gpu_uuid" || cell == "pid";
  });
  if (!header) return false;
  head_.clear();
  for (std::string_view cell : cells) {
    Head head;
    if (const auto open = cell.find(" ["); open != std::string_view::npos && cell.ends_with(']')) {
      head.unit = cell.substr(open + 2, cell.size() - open - 3);
      cell = cell.substr(0, open);
    }
    head.column = ColumnOf(cell);
    head_.push_back(std::move(head));
  }
  return true;
}

SmiLine SmiCsvParser::Take(std::string_view line) {
  line = base::Trim(line);
  if (line.empty()) return std::monostate{};
  std::vector<std::string_view> cells = base::Split(line, ',');
  for (std::string_view& cell : cells) cell = base::Trim(cell);
  if (TakeHeader(cells)) return SmiNotice{SmiNotice::Kind::kHeader, ""};
  if (head_.empty() || cells.size() < 2) return ClassifySmiText(line);
  SmiLine row = TakeRow(std::move(cells));
  if (auto* notice = std::get_if<SmiNotice>(&row);
      notice != nullptr && notice->kind == SmiNotice::Kind::kMalformed) {
    return ClassifySmiText(line);  // a message with commas in it, perhaps
  }
  return row;
}

SmiLine SmiCsvParser::TakeRow(std::vector<std::string_view> cells) const {
  // nvidia-smi quotes nothing: the only field with commas in it is a process's name.
  if (cells.size() > head_.size()) {
    const auto name = std::ranges::find(head_, Column::kProcessName, &Head::column);
    if (name == head_.end()) return SmiNotice{SmiNotice::Kind::kMalformed, ""};
    const auto at = name - head_.begin();
    const std::size_t surplus = cells.size() - head_.size();
    const std::string_view last = cells[static_cast<std::size_t>(at) + surplus];
    std::string_view& first = cells[static_cast<std::size_t>(at)];
    first = std::string_view(first.data(),
                             static_cast<std::size_t>(last.data() + last.size() - first.data()));
    cells.erase(cells.begin() + at + 1,
                cells.begin() + at + 1 + static_cast<std::ptrdiff_t>(surplus));
  }
  if (cells.size() != head_.size()) return SmiNotice{SmiNotice::Kind::kMalformed, ""};
  if (Has(Column::kPid)) return ProcessOf(cells);
  GpuReading reading = ReadingOf(cells);
  if (!reading.uuid.starts_with("GPU-") && !reading.uuid.starts_with("MIG-"))
    return SmiNotice{SmiNotice::Kind::kMalformed, ""};
  return reading;
}

GpuReading SmiCsvParser::ReadingOf(const std::vector<std::string_view>& cells) const {
  GpuReading reading;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string_view cell = cells[i];
    const auto value = [&] { return ParseSmiValue(cell, head_[i].unit); };
    switch (head_[i].column) {
      case Column::kUuid:
        reading.uuid = Text(cell);
        break;
      case Column::kIndex:
        reading.index = base::ParseInt<std::uint32_t>(cell);
        break;
      case Column::kName:
        reading.name = Text(cell);
        break;
      case Column::kBusId:
        reading.bus_id = Text(cell);
        break;
      case Column::kMig:
        reading.mig = cell == "Enabled";
        break;
      case Column::kUtil:
        reading.util_pct = Within(value(), kHighestPercent);
        break;
      case Column::kMemoryUtil:
        reading.memory_util_pct = Within(value(), kHighestPercent);
        break;
      case Column::kMemoryUsed:
        reading.memory_used_bytes = value();
        break;
      case Column::kMemoryTotal:
        reading.memory_total_bytes = value();
        break;
      case Column::kPower:
        reading.power_w = Within(value(), kHighestPower);
        break;
      case Column::kPowerLimit:
        reading.power_limit_w = Within(value(), kHighestPower);
        break;
      case Column::kTemperature:
        reading.temperature_c = Within(value(), kHighestTemperature);
        break;
      case Column::kMemoryTemperature:
        reading.memory_temperature_c = Within(value(), kHighestTemperature);
        break;
      case Column::kSmClock:
        reading.sm_clock_mhz = value();
        break;
      case Column::kMemoryClock:
        reading.memory_clock_mhz = value();
        break;
      case Column::kThrottle:
        if (const auto bits = value()) reading.throttle_reasons = bits;  // two columns may name it
        break;
      case Column::kEcc:
        reading.ecc_errors = value();
        break;
      case Column::kOther:
      case Column::kPid:
      case Column::kProcessName:
      case Column::kProcessMemory:
        break;
    }
  }
  return reading;
}

SmiLine SmiCsvParser::ProcessOf(const std::vector<std::string_view>& cells) const {
  GpuProcess process;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    // Only the columns of this list.
    if (head_[i].column == Column::kUuid) process.gpu_uuid = Text(cells[i]);
    if (head_[i].column == Column::kPid) process.pid = base::ParseInt<pid_t>(cells[i]).value_or(0);
    if (head_[i].column == Column::kProcessName) process.name = Text(cells[i]);
    if (head_[i].column == Column::kProcessMemory)
      process.memory_bytes = ParseSmiValue(cells[i], head_[i].unit);
  }
  if (process.pid <= 0 || process.gpu_uuid.empty())
    return SmiNotice{SmiNotice::Kind::kMalformed, ""};
  return process;
}

}  // namespace expanse::collect
