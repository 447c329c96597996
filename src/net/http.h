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
  void Add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  // Replaces every value of the name by this one.
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
  std::string body;  // as sent: still compressed
  std::string peer;  // "127.0.0.1:50412"
  std::string request_id;
  std::chrono::steady_clock::time_point received;
};

struct HttpResponse {
  int status = 200;
  Headers headers;
  std::string body;
  // For metrics and the access log, never sent. `route` comes from a fixed set, such as a method's
  // full name; empty: "other". `caller` says who asked: "user 0192…".
  std::string route;
  std::string caller;
};

// One key=value pair of a query, decoded (percent escapes, + as space).
struct QueryParameter {
  std::string name;
  std::string value;
};
// Splits a query at '&'. A broken percent escape is kept as it stands.
std::vector<QueryParameter> ParseQuery(std::string_view query);
// Everything but unreserved characters (RFC 3986) as %XX.
std::string PercentEncode(std::string_view text);

}  // namespace expanse::net
