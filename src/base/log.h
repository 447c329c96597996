// Structured log lines to stderr: one line per event, "key=value" or JSON. Never secrets, never
// workload contents. Process-wide because a log has no owner; main() configures it once.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::base {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat : std::uint8_t { kText, kJson };

struct LogField {
  LogField(std::string_view k, std::string_view v) : key(k), value(v), quoted(true) {}
  LogField(std::string_view k, const char* v) : LogField(k, std::string_view(v)) {}
  LogField(std::string_view k, const std::string& v) : LogField(k, std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  template <std::integral T>
  LogField(std::string_view k, T v) : key(k), value(std::to_string(v)) {}
  LogField(std::string_view k, double v);

  std::string_view key;
  std::string value;
  bool quoted = false;  // a string, to be quoted and escaped
};

void ConfigureLog(LogLevel level, LogFormat format);
Result<LogLevel> ParseLogLevel(std::string_view text);

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});
inline void LogDebug(std::string_view e, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::kDebug, e, f);
}
inline void LogInfo(std::string_view e, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::kInfo, e, f);
}
inline void LogWarn(std::string_view e, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::kWarn, e, f);
}
inline void LogError(std::string_view e, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::kError, e, f);
}

// Lets one event through per period: `if (limit_.Allow()) LogWarn(...)`. Thread-safe.
class RateLimit {
 public:
  explicit RateLimit(std::chrono::seconds period) : period_(period) {}
  bool Allow();

 private:
  std::chrono::seconds period_;
  std::atomic<std::int64_t> next_{0};
};

}  // namespace expanse::base
