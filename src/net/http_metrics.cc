#include "net/http_metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace expanse::net {
namespace {

const std::vector<double> kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                      0.25,  0.5,    1,     2.5,  5,     10,   30};

}  // namespace

HttpMetrics::HttpMetrics(base::MetricRegistry& registry, std::string server)
    : in_flight(registry.GetGauge("expanse_http_requests_in_flight",
                                  "Requests being handled or queued.", {{"server", server}})),
      connections(
          registry.GetGauge("expanse_http_connections", "Open connections.", {{"server", server}})),
      shed(registry.GetCounter("expanse_http_requests_shed_total",
                               "Requests refused because all workers were busy.",
                               {{"server", server}})),
      refused_connections(registry.GetCounter(
          "expanse_http_connections_refused_total",
          "Connections closed at once because too many were open.", {{"server", server}})),
      registry_(registry),
      server_(std::move(server)) {}

void HttpMetrics::Count(std::string_view route, int status, double seconds) {
  if (route.empty()) route = "other";
  const auto status_class = static_cast<std::size_t>(std::clamp(status / 100, 0, 5));
  base::Counter* counter = nullptr;
  base::Histogram* histogram = nullptr;
  {
    std::scoped_lock lock(mutex_);
    auto it = routes_.find(route);
    if (it == routes_.end()) it = routes_.emplace(std::string(route), Route{}).first;
    Route& entry = it->second;
    if (entry.seconds == nullptr) {
      entry.seconds =
          &registry_.GetHistogram("expanse_http_request_seconds", "Time from header to answer.",
                                  kSeconds, {{"server", server_}, {"route", it->first}});
    }
    if (entry.by_class[status_class] == nullptr) {
      entry.by_class[status_class] =
          &registry_.GetCounter("expanse_http_requests_total", "Requests answered.",
                                {{"server", server_},
                                 {"route", it->first},
                                 {"status", fmt::format("{}xx", status_class)}});
    }
    counter = entry.by_class[status_class];
    histogram = entry.seconds;
  }
  counter->Add();
  histogram->Observe(seconds);
}

}  // namespace expanse::net
