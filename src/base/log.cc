#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "base/text.h"
#include "base/time.h"

namespace expanse::base {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::atomic<LogFormat> g_format{LogFormat::kText};

spdlog::logger& Logger() {
  // Leaked on purpose: other threads may log while statics are destroyed.
  static spdlog::logger* logger = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_pattern("%v");
    auto* made = new spdlog::logger("expanse", sink);
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "info";
}

std::string Quote(std::string_view value) {
  std::string text = "\"";
  for (char c : EscapeForDisplay(value)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

// Needs no quotes: nothing in it separates fields, and nothing that a terminal would obey.
bool IsBare(std::string_view value) {
  return !value.empty() && value.find_first_of(" \"=\\") == std::string_view::npos &&
         EscapeForDisplay(value) == value;
}

}  // namespace

// JSON has no spelling for infinity and NaN: those are text.
LogField::LogField(std::string_view k, double v)
    : key(k), value(fmt::format("{:g}", v)), quoted(!std::isfinite(v)) {}

void ConfigureLog(LogLevel level, LogFormat format) {
  g_level = level;
  g_format = format;
}

Result<LogLevel> ParseLogLevel(std::string_view text) {
  for (LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError, LogLevel::kOff}) {
    if (LevelName(level) == text) return level;
  }
  return Fail(Code::kInvalidArgument, "log.level",
              fmt::format("\"{}\" is not a log level; use debug, info, warn, error or off",
                          EscapeForDisplay(text)));
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < g_level.load(std::memory_order_relaxed)) return;
  const std::string now = FormatRfc3339(SystemClock().Now());
  std::string line;
  if (g_format.load(std::memory_order_relaxed) == LogFormat::kJson) {
    line = fmt::format(R"({{"time":"{}","level":"{}","event":{})", now, LevelName(level),
                       Quote(event));
    for (const LogField& field : fields) {
      line +=
          fmt::format(R"(,"{}":{})", field.key, field.quoted ? Quote(field.value) : field.value);
    }
    line += '}';
  } else {
    line = fmt::format("{} {:<5} {}", now, LevelName(level), event);
    for (const LogField& field : fields) {
      line +=
          fmt::format(" {}={}", field.key, IsBare(field.value) ? field.value : Quote(field.value));
    }
  }
  Logger().log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

bool RateLimit::Allow() {
  const std::int64_t now = SystemClock().Mono().time_since_epoch().count();
  std::int64_t next = next_.load();
  if (now < next) return false;
  return next_.compare_exchange_strong(next, now + std::chrono::nanoseconds(period_).count());
}

}  // namespace expanse::base
