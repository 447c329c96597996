#include "intelligence/predict/input_size.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace expanse::intelligence::predict {
namespace {

constexpr double kFarthest = 4;  // times beyond the sizes seen
// Beyond the sizes seen a need is taken to grow with the square of the size at most: sizes that
// hardly differ can be fitted with any power.
constexpr double kSteepestBeyond = 2;

struct Point {
  double size;
  double need;
};

struct Line {
  double intercept = 0;
  double slope = 0;
  double mean_x = 0;
  double sum_xx = 0;
};

// Ordinary least squares.
template <typename X, typename Y>
std::optional<Line> Fit(const std::vector<Point>& points, X x, Y y) {
  const auto n = static_cast<double>(points.size());
  Line line;
  double mean_y = 0;
  for (const Point& point : points) {
    line.mean_x += x(point) / n;
    mean_y += y(point) / n;
  }
  double sum_xy = 0;
  for (const Point& point : points) {
    const double dx = x(point) - line.mean_x;
    line.sum_xx += dx * dx;
    sum_xy += dx * (y(point) - mean_y);
  }
  if (!(line.sum_xx > 0) || !std::isfinite(sum_xy)) return std::nullopt;
  line.slope = sum_xy / line.sum_xx;
  line.intercept = mean_y - line.slope * line.mean_x;
  return line;
}

// Squared error of log need, each run predicted from the others.
double LeftOutErrorOfMean(const std::vector<Point>& points) {
  const auto n = static_cast<double>(points.size());
  double mean = 0;
  for (const Point& point : points) mean += std::log(point.need) / n;
  double error = 0;
  for (const Point& point : points) {
    const double residual = (std::log(point.need) - mean) * n / (n - 1);
    error += residual * residual;
  }
  return error;
}

template <typename X>
double LeftOutError(const std::vector<Point>& points, const Explanation& explanation,
                    const Line& line, X x) {
  const auto n = static_cast<double>(points.size());
  double error = 0;
  for (const Point& point : points) {
    const double dx = x(point) - line.mean_x;
    const double leverage = std::min(1 / n + dx * dx / line.sum_xx, 1 - 1e-6);
    const double residual =
        (std::log(point.need) - explanation.LogNeed(point.size)) / (1 - leverage);
    error += residual * residual;
  }
  return error;
}

void Consider(std::optional<Explanation>& best, Explanation candidate, double error,
              double error_of_mean) {
  candidate.gain = 1 - error / error_of_mean;
  if (!(candidate.gain >= kMinGain) || candidate.slope <= 0) return;
  if (!best || candidate.gain > best->gain) best = candidate;
}

}  // namespace

double Explanation::LogNeed(double size) const {
  if (size <= largest) return OnCurve(std::max(size, smallest));
  return std::min(OnCurve(size), OnCurve(largest) + kSteepestBeyond * std::log(size / largest));
}

double Explanation::OnCurve(double size) const {
  switch (shape) {
    case Shape::kPower:
      return intercept + slope * std::log(size);
    case Shape::kLine:
      return std::log(std::max(intercept + slope * size, std::numeric_limits<double>::min()));
  }
  return 0;
}

std::optional<Explanation> ExplainByInputSize(std::span<const Observation> needs, double size) {
  if (!Positive(size)) return std::nullopt;
  std::vector<Point> points;
  std::set<double> sizes;
  for (const Observation& need : needs) {
    if (need.censored || !std::isfinite(need.input_size)) continue;
    points.push_back({need.input_size, need.need});
    if (sizes.size() < kMinSizes) sizes.insert(need.input_size);
  }
  if (points.size() < kMinExplainedRuns || sizes.size() < kMinSizes) return std::nullopt;
  const auto [low, high] = std::ranges::minmax_element(points, {}, &Point::size);
  Explanation common;
  common.smallest = low->size;
  common.largest = high->size;
  if (size > common.largest * kFarthest || size < common.smallest / kFarthest) return std::nullopt;

  const double error_of_mean = LeftOutErrorOfMean(points);
  if (!(error_of_mean > 0)) return std::nullopt;
  std::optional<Explanation> best;
  const auto log_size = [](const Point& point) { return std::log(point.size); };
  const auto log_need = [](const Point& point) { return std::log(point.need); };
  if (const auto line = Fit(points, log_size, log_need)) {
    Explanation power = common;
    power.intercept = line->intercept;
    power.slope = line->slope;
    Consider(best, power, LeftOutError(points, power, *line, log_size), error_of_mean);
  }
  const auto plain_size = [](const Point& point) { return point.size; };
  const auto plain_need = [](const Point& point) { return point.need; };
  if (const auto line = Fit(points, plain_size, plain_need)) {
    Explanation straight = common;
    straight.shape = Explanation::Shape::kLine;
    straight.intercept = line->intercept;
    straight.slope = line->slope;
    // A line that predicts next to nothing for small inputs says nothing about them.
    const double least = std::ranges::min(points, {}, &Point::need).need / 4;
    if (straight.intercept + straight.slope * std::min(size, common.smallest) < least) return best;
    Consider(best, straight, LeftOutError(points, straight, *line, plain_size), error_of_mean);
  }
  return best;
}

std::vector<Observation> AdjustedTo(double size, const Explanation& explanation,
                                    std::span<const Observation> needs) {
  std::vector<Observation> adjusted(needs.begin(), needs.end());
  const double at_size = explanation.LogNeed(size);
  for (Observation& need : adjusted) {
    if (!std::isfinite(need.input_size)) continue;
    need.need *= std::exp(at_size - explanation.LogNeed(need.input_size));
  }
  return adjusted;
}

}  // namespace expanse::intelligence::predict
