// HTTP messages as the rest of the program sees them. Beast stays inside net/*.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace expanse::net {

// Header fields in order; names compare without case.
class Headers {
 public:
  void Add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  void Set(std::string_view name, std::string value);
  // The first value, trimmed; empty when absent.
  std::string_view Get(std::string_view name) const;
  bool Has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct HttpRequest {
  std::string method;
  std::string path;   // percent-encoded, without the query
  std::string query;  // after '?', percent-encoded
  Headers headers;
  std::string body;   // as sent: still compressed
  std::string peer;   // "127.0.0.1:50412"
  std::string request_id;
  std::chrono::steady_clock::time_point received;
};

struct HttpResponse {
  int status = 200;
  Headers headers;
  std::string body;
};

}  // namespace expanse::net
