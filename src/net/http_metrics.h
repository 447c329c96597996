// The instruments of one HttpServer, looked up once per route. Internal to net/. Thread-safe.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/metrics.h"

namespace expanse::net {

class HttpMetrics {
 public:
  HttpMetrics(base::MetricRegistry& registry, std::string server);

  // One answered request. `route` comes from a fixed set; empty counts as "other".
  void Count(std::string_view route, int status, double seconds);

  base::Gauge& in_flight;
  base::Gauge& connections;
  base::Counter& shed;
  base::Counter& refused_connections;

 private:
  struct Route {
    std::array<base::Counter*, 6> by_class{};  // index: the status's first digit
    base::Histogram* seconds = nullptr;
  };
  base::MetricRegistry& registry_;
  const std::string server_;
  std::mutex mutex_;  // guards routes_
  std::map<std::string, Route, std::less<>> routes_;
};

}  // namespace expanse::net
