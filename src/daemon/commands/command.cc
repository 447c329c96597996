#include "daemon/commands/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/log.h"

namespace expanse::daemon {

int Complain(const base::Error& error, int code) {
  fmt::print(stderr, "expanse-daemon: {}\n", error.message);
  return code;
}

sigset_t BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of write(2), as a full disk is
  return set;
}

int WaitForSignal(const sigset_t& signals, const std::atomic<bool>* ended) {
  constexpr timespec kHalfASecond{.tv_sec = 0, .tv_nsec = 500'000'000};
  int signal = -1;
  while (signal < 0 && (ended == nullptr || !*ended)) {
    signal = ended == nullptr ? ::sigwaitinfo(&signals, nullptr)
                              : ::sigtimedwait(&signals, nullptr, &kHalfASecond);
  }
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return std::max(signal, 0);
}

base::Status ConfigureLogging(const base::Settings& settings) {
  EXPANSE_ASSIGN_OR_RETURN(const auto level, base::ParseLogLevel(settings.GetString("log.level")));
  const std::string& format = settings.GetString("log.format");
  if (format != "text" && format != "json") {
    return base::Fail(base::Code::kInvalidArgument, "settings.value",
                      "log.format must be text or json");
  }
  base::ConfigureLog(level, format == "json" ? base::LogFormat::kJson : base::LogFormat::kText);
  return {};
}

}  // namespace expanse::daemon
