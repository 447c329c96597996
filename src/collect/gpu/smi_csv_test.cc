#include "collect/gpu/smi_csv.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/text.h"

namespace expanse::collect {
namespace {

using Kind = SmiNotice::Kind;

constexpr char kHeader[] =
    "index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw "
    "[W], "
    "temperature.gpu, clocks.current.sm [MHz], clocks_event_reasons.active, mig.mode.current";

GpuReading Row(std::string_view header, std::string_view row) {
  SmiCsvParser parser;
  parser.Take(header);
  const SmiLine line = parser.Take(row);
  const auto* reading = std::get_if<GpuReading>(&line);
  if (reading == nullptr) ADD_FAILURE() << row;
  return reading == nullptr ? GpuReading{} : *reading;
}

Kind KindOf(const SmiLine& line) {
  const auto* notice = std::get_if<SmiNotice>(&line);
  if (notice == nullptr) ADD_FAILURE() << "not a notice";
  return notice == nullptr ? Kind::kHeader : notice->kind;
}

TEST(SmiCsv, ReadsRowsWithAndWithoutUnits) {
  for (const char* row :
       {"3, GPU-aa, NVIDIA X9, 42, 2048, 81920, 310.50, 61, 1410, 0x0000000000000004, Disabled",
        "3, GPU-aa, NVIDIA X9, 42 %, 2048 MiB, 81920 MiB, 310.50 W, 61, 1410 MHz, 0x4, Disabled"}) {
    const GpuReading reading = Row(kHeader, row);
    EXPECT_EQ(reading.index, 3U);
    EXPECT_EQ(reading.uuid, "GPU-aa");
    EXPECT_EQ(reading.name, "NVIDIA X9");
    EXPECT_EQ(reading.util_pct, 42.0);
    EXPECT_EQ(reading.memory_used_bytes, 2048.0 * 1024 * 1024);
    EXPECT_EQ(reading.memory_total_bytes, 80.0 * (1ULL << 30));
    EXPECT_EQ(reading.power_w, 310.5);
    EXPECT_EQ(reading.temperature_c, 61.0);
    EXPECT_EQ(reading.sm_clock_mhz, 1410.0);
    EXPECT_EQ(reading.throttle_reasons, 4.0);
    EXPECT_FALSE(reading.mig);
  }
}

TEST(SmiCsv, FindsColumnsByNameInAnyOrderAndOldSpelling) {
  const GpuReading reading =
      Row("gpu_name, clocks.sm [MHz], novelty, clocks_throttle_reasons.active, gpu_uuid",
          "Y, 900 MHz, ?, 0x1, GPU-b");
  EXPECT_EQ(reading.uuid, "GPU-b");
  EXPECT_EQ(reading.sm_clock_mhz, 900.0);
  EXPECT_EQ(reading.throttle_reasons, 1.0);
  EXPECT_FALSE(reading.util_pct);
}

TEST(SmiCsv, UnknownIsNeverZero) {
  for (const char* cell :
       {"[N/A]", "[Not Supported]", "[Unknown Error]", "ERR!", "N/A", "", "[GPU is lost]", "-1",
        "9223372036854775794", "9223372036854775794 MiB", "140737488355328.0", "2147483632",
        "4294967295", "nan", "inf", "101", "0xffffffffffffffff", "5 furlongs",
        "[Requested functionality has been deprecated]"}) {
    SmiCsvParser parser;
    parser.Take("uuid, utilization.gpu [%]");
    const SmiLine line = parser.Take(std::string("GPU-a, ") + cell);
    const auto* reading = std::get_if<GpuReading>(&line);
    ASSERT_NE(reading, nullptr) << cell;
    EXPECT_FALSE(reading->util_pct) << cell;
  }
  EXPECT_EQ(ParseSmiValue(" 0 ", "%"), 0.0);
  EXPECT_EQ(ParseSmiValue("1.5 GHz", ""), 1500.0);
}

TEST(SmiCsv, TellsMigDevicesAndDividedOnes) {
  EXPECT_TRUE(Row(kHeader, "0, GPU-a, X, [N/A], 9, 9, 1, 1, 1, 0x0, Enabled").mig);
  EXPECT_EQ(Row("uuid, memory.used [MiB]", "MIG-11-22, 7").memory_used_bytes, 7.0 * (1 << 20));
}

TEST(SmiCsv, ReadsProcessesWithCommasInTheirNames) {
  SmiCsvParser parser;
  parser.Take("gpu_uuid, pid, process_name, used_gpu_memory [MiB]");
  SmiLine line = parser.Take("GPU-a, 4711, python, -c, x=1, 2, 512 MiB");
  const auto* process = std::get_if<GpuProcess>(&line);
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(process->pid, 4711);
  EXPECT_EQ(process->name, "python, -c, x=1, 2");
  EXPECT_EQ(process->memory_bytes, 512.0 * (1 << 20));
  line = parser.Take("GPU-a, 12, /bin/w, [N/A]");
  ASSERT_TRUE(std::holds_alternative<GpuProcess>(line));
  EXPECT_FALSE(std::get<GpuProcess>(line).memory_bytes);
}

TEST(SmiCsv, RefusesRaggedRows) {
  SmiCsvParser parser;
  parser.Take("uuid, name");
  EXPECT_EQ(KindOf(parser.Take("GPU-a, X, surplus")), Kind::kMalformed);
  EXPECT_EQ(KindOf(parser.Take("GPU-a")), Kind::kMalformed);
  EXPECT_EQ(KindOf(parser.Take("not-an-id, X")), Kind::kMalformed);
  EXPECT_EQ(KindOf(SmiCsvParser().Take("GPU-a, X")), Kind::kMalformed) << "no header yet";
  SmiCsvParser apps;
  apps.Take("gpu_uuid, pid");
  EXPECT_EQ(KindOf(apps.Take("GPU-a, [N/A]")), Kind::kMalformed);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(apps.Take("  \r")));
}

TEST(SmiCsv, ANewHeaderReplacesTheOld) {
  SmiCsvParser parser;
  parser.Take("uuid, memory.used [MiB]");
  EXPECT_EQ(KindOf(parser.Take("memory.used [MiB], uuid")), Kind::kHeader);
  EXPECT_TRUE(std::holds_alternative<GpuReading>(parser.Take("5, GPU-a")));
}

TEST(SmiCsv, KnowsTheDriversComplaints) {
  EXPECT_EQ(ClassifySmiText("No devices were found\n").kind, Kind::kNoDevices);
  EXPECT_EQ(
      ClassifySmiText(
          "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.1")
          .kind,
      Kind::kDriverError);
  EXPECT_EQ(ClassifySmiText("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
                            "driver. Make sure, "
                            "that it is there")
                .kind,
            Kind::kDriverError);
  EXPECT_EQ(
      ClassifySmiText("Unable to determine the device handle for GPU0000:41:00.0: Unknown Error")
          .kind,
      Kind::kDriverError);
  EXPECT_EQ(ClassifySmiText("Failed to initialize NVML: Insufficient Permissions").kind,
            Kind::kDriverError);
  EXPECT_EQ(ClassifySmiText("Insufficient Permissions").kind, Kind::kNoPermission);
  const SmiNotice field =
      ClassifySmiText("Field \"clocks_event_reasons.active\" is not a valid field to query.\n");
  EXPECT_EQ(field.kind, Kind::kBadField);
  EXPECT_EQ(field.detail, "clocks_event_reasons.active");
  SmiCsvParser parser;
  parser.Take("uuid, name");
  EXPECT_EQ(KindOf(parser.Take("Unable to determine the device handle for GPU 0000:41:00.0: GPU is "
                               "lost. Reboot, please")),
            Kind::kDriverError);
}

std::string ReferenceDirectory() {
  const char* given = std::getenv("EXPANSE_REFERENCE_DIR");
  return given != nullptr ? given : EXPANSE_SOURCE_DIR "/../../../shared/reference";
}

// Sessions of real machines, each with the output of many nvidia-smi commands.
TEST(SmiCsv, ReadsCapturesOfRealMachines) {
  const std::string directory = ReferenceDirectory() + "/fixtures/gpu";
  const auto names = base::ListDirectory(directory);
  if (!names) GTEST_SKIP() << "no reference inputs at " << directory;
  int captures = 0;
  int processes = 0;
  for (const std::string& name : *names) {
    if (name.find("__captures__") == std::string::npos) continue;
    const auto text = base::ReadFile(directory + "/" + name);
    ASSERT_TRUE(text);
    ++captures;
    std::string command;
    SmiCsvParser parser;
    int rows = 0;
    for (std::string_view line : base::Split(*text, '\n')) {
      if (line.starts_with("# $ ")) {
        command = line;
        parser = SmiCsvParser();
      }
      const bool gpu = command.find("--query-gpu=") != std::string::npos;
      const bool apps = command.find("--query-compute-apps=") != std::string::npos;
      if ((!gpu && !apps) || line.starts_with('#')) continue;
      const SmiLine parsed = parser.Take(line);
      const auto* notice = std::get_if<SmiNotice>(&parsed);
      EXPECT_TRUE(notice == nullptr || notice->kind == Kind::kHeader) << name << line;
      if (std::holds_alternative<GpuProcess>(parsed)) ++processes;
      const auto* reading = std::get_if<GpuReading>(&parsed);
      if (reading == nullptr) continue;
      ++rows;
      EXPECT_TRUE(reading->uuid.starts_with("GPU-")) << name;
      EXPECT_GT(reading->memory_total_bytes.value_or(0), 1e9) << name;
      EXPECT_GT(reading->temperature_c.value_or(0), 10) << name;
      EXPECT_GT(reading->power_w.value_or(0), 10) << name;
      EXPECT_GT(reading->sm_clock_mhz.value_or(0), 100) << name;
      EXPECT_TRUE(reading->throttle_reasons) << name;
      EXPECT_EQ(reading->util_pct.has_value(), !reading->mig) << name;
    }
    EXPECT_GE(rows, 1) << name;
  }
  EXPECT_GE(captures, 8);
  EXPECT_GE(processes, 10);
}

}  // namespace
}  // namespace expanse::collect
