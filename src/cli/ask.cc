#include "cli/ask.h"

#include <fmt/format.h>

#include "base/text.h"

namespace expanse::cli {

std::expected<bool, Failure> Confirm(App& app, std::string_view question, bool yes_given,
                                     std::string_view command) {
  if (yes_given) return true;
  if (!app.terminal.CanAsk()) {
    return FailUsage(fmt::format("{}: nobody to ask for confirmation", command),
                     fmt::format("{} --yes", command));
  }
  EXPANSE_ASSIGN_OR_RETURN(const std::string answer,
                           app.terminal.AskLine(fmt::format("{} [y/N]: ", question)));
  const std::string lower = base::ToLower(answer);
  return lower == "y" || lower == "yes";
}

void Warn(App& app, std::string_view text) {
  app.terminal.Err(fmt::format("expanse: warning: {}\n", base::EscapeForDisplay(text)));
}

void Say(App& app, std::string_view text) {
  app.terminal.Err(fmt::format("{}\n", base::EscapeForDisplay(text)));
}

void WarnIfPlain(App& app, std::string_view url) {
  constexpr std::string_view kPlain = "http://";
  if (!url.starts_with(kPlain)) return;
  std::string_view host = url.substr(kPlain.size());
  host = host.substr(0, host.find('/'));
  if (host.starts_with('[')) {
    host = host.substr(1, host.find(']') - 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  if (host == "localhost" || host == "::1" || host.starts_with("127.")) return;
  Warn(app, fmt::format("the connection to {} is not encrypted", url));
}

}  // namespace expanse::cli
