// Every metric that we collect: its name as people type it, unit, scope, labels and help. Docs,
// CLI, console and collectors take them from here; docs/metrics.md is generated.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace expanse::evidence {

enum class MetricScope : std::uint8_t {
  kWorkload,  // of one execution, also of the GPUs it holds
  kHost,      // of the machine
  kProcess,   // of the processes of one name in one execution; the name is in the series' source
  kGpu,       // of one device: for the machine, and for the executions that hold it
};

struct MetricInfo {
  std::string_view name;  // "gpu-util"
  std::string_view
      unit;  // "cores", "bytes", "bytes/s", "percent", "watts", "celsius", "megahertz", …
  MetricScope scope;
  std::string_view label;  // for charts: "GPU utilisation"
  std::string_view help;   // one sentence
};

// In the order in which they are shown.
std::span<const MetricInfo> MetricCatalogue();
// Null for a name that we do not collect; such names may still be in the store.
const MetricInfo* FindMetric(std::string_view name);
std::string_view Name(MetricScope scope);
// docs/metrics.md.
std::string MetricsMarkdown();

}  // namespace expanse::evidence
