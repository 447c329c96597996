// The other records that flow from daemon to store: samples, log tails, source bundles, health.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "evidence/execution.h"

namespace expanse::evidence {

struct ExecutionObservation {
  ExecutionKey key;
  Execution execution;
};

// Who and what a series measures. Attribution and unit are properties, not part of the identity.
struct SeriesColumn {
  std::string metric;
  std::string source;  // "host", "cgroup", "process", "nvidia-smi", …
  std::string node;
  std::optional<std::uint32_t> gpu_index;
  std::string gpu_uuid;
  std::string attribution;  // "exclusive", "shared", "idle_held", "unknown"; empty off GPUs
  std::string unit;
  std::vector<double> values;  // NaN: no point at that time
};

// Points of several series of one scope. Every column has the length of `times`.
struct SampleBatch {
  std::optional<ExecutionKey> key;  // absent: the compute itself
  std::vector<base::WallTime> times;
  std::vector<SeriesColumn> columns;
};

struct LogTail {
  ExecutionKey key;
  std::string stream;  // "stdout", "stderr", "combined"
  std::string data;
  std::uint64_t offset = 0;       // of data's first byte in the whole stream
  std::uint64_t total_bytes = 0;  // length of the whole stream so far
  std::string first_error;
  std::uint64_t first_error_offset = 0;
  std::uint32_t redactions = 0;
};

struct SourceFile {
  std::string path;
  std::string role;  // "script", "argument", "import"
  std::string data;
  std::string content_hash;  // SHA-256, hex, of the bytes before redaction
  std::uint32_t redactions = 0;
};

struct SkippedFile {
  std::string path;
  std::string reason;
};

struct SourceBundle {
  ExecutionKey key;
  std::vector<SourceFile> files;
  std::vector<SkippedFile> skipped;
};

// "sha256:" + hex over the sorted (path, content hash) pairs: the identity of what ran.
std::string BundleHash(const SourceBundle& bundle);

using Payload = std::variant<ExecutionObservation, SampleBatch, LogTail, SourceBundle>;

struct Record {
  std::uint64_t sequence = 0;  // within a stream, from 1, never reused
  base::WallTime observed_at{};
  Payload payload;
};

enum class HealthStatus : std::uint8_t { kUnspecified, kOk, kDegraded, kFailed, kDisabled };

struct HealthRow {
  std::string collector;
  HealthStatus status = HealthStatus::kUnspecified;
  std::string reason;   // a stable word such as "no_permission"; empty when ok
  std::string message;  // for people
  base::WallTime checked_at{};
  std::map<std::string, double> figures;
};

struct HealthReport {
  std::string daemon_version;
  std::string node;
  base::WallTime started_at{};
  std::vector<HealthRow> rows;
};

}  // namespace expanse::evidence
