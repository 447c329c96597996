// The CSV that nvidia-smi writes for --query-gpu and --query-compute-apps, one line at a time, of
// any driver version: columns are found by their names in the header, units are in the header or
// behind the values, and what the driver does not know comes in many spellings. Format:
// nvidia-smi(1) and `nvidia-smi --help-query-gpu`; pages of drivers 465 to 610 were tried.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace expanse::collect {

// A row of --query-gpu. Absent is unknown.
struct GpuReading {
  std::string uuid;  // "GPU-…" or "MIG-…"; the only identity, never the index
  std::optional<std::uint32_t> index;
  std::string name;
  std::string bus_id;
  bool mig = false;  // divided into instances, which this list does not show
  std::optional<double> util_pct;
  std::optional<double> memory_util_pct;
  std::optional<double> memory_used_bytes;
  std::optional<double> memory_total_bytes;
  std::optional<double> power_w;
  std::optional<double> power_limit_w;
  std::optional<double> temperature_c;
  std::optional<double> memory_temperature_c;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> throttle_reasons;  // bit mask
  std::optional<double> ecc_errors;        // uncorrected, since the driver was loaded
};

// A row of --query-compute-apps.
struct GpuProcess {
  std::string gpu_uuid;
  pid_t pid = 0;
  std::string name;
  std::optional<double> memory_bytes;
};

// A line that is no row.
struct SmiNotice {
  enum class Kind : std::uint8_t {
    kHeader,
    kNoDevices,     // "No devices were found"
    kDriverError,   // no driver, driver and library of different versions, a lost device
    kNoPermission,  // "Insufficient Permissions"
    kBadField,      // this version has no field called `detail`
    kMalformed,     // a row that does not fit the header, or text we do not know
  };
  Kind kind = Kind::kHeader;
  std::string detail;
};

using SmiLine =
    std::variant<std::monostate, GpuReading, GpuProcess, SmiNotice>;  // monostate: blank

// Not thread-safe. One per stream; remembers the header.
class SmiCsvParser {
 public:
  SmiLine Take(std::string_view line);

 private:
  enum class Column : std::uint8_t {
    kOther,
    kUuid,
    kIndex,
    kName,
    kBusId,
    kMig,
    kUtil,
    kMemoryUtil,
    kMemoryUsed,
    kMemoryTotal,
    kPower,
    kPowerLimit,
    kTemperature,
    kMemoryTemperature,
    kSmClock,
    kMemoryClock,
    kThrottle,
    kEcc,
    kPid,
    kProcessName,
    kProcessMemory,
  };
  struct Head {
    Column column = Column::kOther;
    std::string unit;
  };
  static Column ColumnOf(std::string_view name);
  bool TakeHeader(const std::vector<std::string_view>& cells);
  SmiLine TakeRow(std::vector<std::string_view> cells) const;
  GpuReading ReadingOf(const std::vector<std::string_view>& cells) const;
  SmiLine ProcessOf(const std::vector<std::string_view>& cells) const;
  bool Has(Column column) const;

  std::vector<Head> head_;
};

// A message of nvidia-smi, from either stream.
SmiNotice ClassifySmiText(std::string_view text);

// A value with its unit ("81559 MiB"), or the unit from the header, in base units (bytes, W, MHz,
// %, °C); nothing for the many spellings of unknown, vendor blanks included.
std::optional<double> ParseSmiValue(std::string_view cell, std::string_view unit);

}  // namespace expanse::collect
