#include "base/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/result.h"

namespace expanse::base {
namespace {

std::string EscapeLabel(std::string_view value) {
  std::string text;
  for (char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string RenderLabels(const MetricLabels& labels, std::string_view extra = {}) {
  std::string text;
  for (const auto& [key, value] : labels) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", key, EscapeLabel(value));
  }
  if (!extra.empty()) text += fmt::format("{}{}", text.empty() ? "" : ",", extra);
  return text.empty() ? "" : "{" + text + "}";
}

void RenderHeader(std::string& out, std::string_view name, std::string_view help,
                  std::string_view type) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  EXPANSE_CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
}

void Histogram::Observe(double v) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), v) - bounds_.begin();
  counts_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(v, std::memory_order_relaxed);
}

Counter& MetricRegistry::GetCounter(std::string_view name, std::string_view help,
                                    const MetricLabels& labels) {
  std::scoped_lock lock(mutex_);
  auto& family = counters_[std::string(name)];
  family.help = help;
  return family.members[labels];
}

Gauge& MetricRegistry::GetGauge(std::string_view name, std::string_view help,
                                const MetricLabels& labels) {
  std::scoped_lock lock(mutex_);
  auto& family = gauges_[std::string(name)];
  family.help = help;
  return family.members[labels];
}

Histogram& MetricRegistry::GetHistogram(std::string_view name, std::string_view help,
                                        std::vector<double> bounds, const MetricLabels& labels) {
  std::scoped_lock lock(mutex_);
  auto& family = histograms_[std::string(name)];
  family.help = help;
  return family.members.try_emplace(labels, std::move(bounds)).first->second;
}

std::string MetricRegistry::Render() const {
  std::scoped_lock lock(mutex_);
  std::string out;
  for (const auto& [name, family] : counters_) {
    RenderHeader(out, name, family.help, "counter");
    for (const auto& [labels, counter] : family.members) {
      out += fmt::format("{}{} {}\n", name, RenderLabels(labels), counter.value());
    }
  }
  for (const auto& [name, family] : gauges_) {
    RenderHeader(out, name, family.help, "gauge");
    for (const auto& [labels, gauge] : family.members) {
      out += fmt::format("{}{} {}\n", name, RenderLabels(labels), gauge.value());
    }
  }
  for (const auto& [name, family] : histograms_) {
    RenderHeader(out, name, family.help, "histogram");
    for (const auto& [labels, histogram] : family.members) {
      std::uint64_t total = 0;
      for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
        total += histogram.bucket(i);
        const std::string bound =
            i == histogram.bounds().size() ? "+Inf" : fmt::format("{}", histogram.bounds()[i]);
        out += fmt::format("{}_bucket{} {}\n", name, RenderLabels(labels, "le=\"" + bound + "\""),
                           total);
      }
      out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, RenderLabels(labels),
                         histogram.sum(), name, RenderLabels(labels), total);
    }
  }
  return out;
}

}  // namespace expanse::base
