#include "evidence/metric_catalogue.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/files.h"

namespace expanse::evidence {
namespace {

TEST(MetricCatalogue, HasTheUnitsThatTheCommandLinePromises) {
  const auto unit = [](std::string_view name) {
    const MetricInfo* metric = FindMetric(name);
    return metric == nullptr ? std::string_view("missing") : metric->unit;
  };
  EXPECT_EQ(unit("cpu"), "cores");
  EXPECT_EQ(unit("memory"), "bytes");
  EXPECT_EQ(unit("gpu-util"), "percent");
  EXPECT_EQ(unit("gpu-memory-used"), "bytes");
  EXPECT_EQ(unit("gpu-memory-total"), "bytes");
  EXPECT_EQ(unit("gpu-power"), "watts");
  EXPECT_EQ(unit("gpu-temp"), "celsius");
  EXPECT_EQ(unit("gpu-clock"), "megahertz");
  EXPECT_EQ(FindMetric("DCGM_FI_DEV_GPU_UTIL"), nullptr);
}

TEST(MetricCatalogue, EntriesAreUniqueAndComplete) {
  std::set<std::string_view> names;
  std::set<std::string_view> labels;
  for (const MetricInfo& metric : MetricCatalogue()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_TRUE(labels.insert(metric.label).second) << metric.label;
    EXPECT_EQ(metric.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string_view::npos)
        << metric.name;
    EXPECT_FALSE(metric.unit.empty()) << metric.name;
    EXPECT_TRUE(metric.help.ends_with('.')) << metric.name;
    EXPECT_EQ(metric.name.starts_with("host-"), metric.scope == MetricScope::kHost) << metric.name;
    EXPECT_EQ(metric.name.starts_with("gpu-"), metric.scope == MetricScope::kGpu) << metric.name;
  }
}

TEST(MetricCatalogue, DocumentationIsCurrent) {
  const std::string path = EXPANSE_SOURCE_DIR "/../../docs/metrics.md";
  if (std::getenv("EXPANSE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::MakeDirectories(EXPANSE_SOURCE_DIR "/../../docs"));
    ASSERT_TRUE(base::WriteFileAtomically(path, MetricsMarkdown(), 0644));
  }
  EXPECT_EQ(base::ReadFile(path).value_or("missing"), MetricsMarkdown())
      << "run this program with EXPANSE_UPDATE_GOLDEN=1";
}

}  // namespace
}  // namespace expanse::evidence
