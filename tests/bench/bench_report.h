// Output of the benches: a table for people, then one line of JSON for programs.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace expanse::bench {

class Report {
 public:
  explicit Report(std::string name) : name_(std::move(name)) {}
  void Add(std::string figure, double value, std::string unit) {
    rows_.push_back({std::move(figure), value, std::move(unit)});
  }
  void Print() const {
    std::size_t width = 0;
    for (const Row& row : rows_) width = std::max(width, row.figure.size());
    fmt::print("{}\n", name_);
    for (const Row& row : rows_)
      fmt::print("  {:<{}}  {:>14.6g} {}\n", row.figure, width, row.value, row.unit);
    std::string json = fmt::format("{{\"bench\":\"{}\",\"figures\":[", name_);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      json += fmt::format("{}{{\"name\":\"{}\",\"value\":{},\"unit\":\"{}\"}}", i ? "," : "",
                          rows_[i].figure, rows_[i].value, rows_[i].unit);
    }
    fmt::print("{}]}}\n", json);
  }

 private:
  struct Row {
    std::string figure;
    double value;
    std::string unit;
  };
  std::string name_;
  std::vector<Row> rows_;
};

// The q-quantile (nearest rank) of `values`, which it sorts.
inline double Quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  return values[rank];
}

}  // namespace expanse::bench
