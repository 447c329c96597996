#include "cli/app.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/ask.h"
#include "cli/help.h"
#include "cli/parse.h"

namespace expanse::cli {
namespace {

// What to do about an error whose command had no better idea.
std::string HintFor(const App& app, const base::Error& error) {
  if (error.reason == "session.permissions") return "chmod 600 " + app.StatePath("session.json");
  switch (error.code) {
    case base::Code::kUnauthenticated:
      return "expanse login";
    case base::Code::kPermissionDenied:
      return "ask an owner of your organisation, or expanse status";
    case base::Code::kUnavailable:
    case base::Code::kDeadlineExceeded:
      return "check the address and that the server runs, then again";
    case base::Code::kNotFound:
      return "expanse executions, or expanse compute list";
    case base::Code::kInvalidArgument:
    case base::Code::kOutOfRange:
      return "expanse help";
    case base::Code::kResourceExhausted:
      return "again in a moment";
    case base::Code::kUnimplemented:
      return "a server of the same version as this program";
    case base::Code::kCancelled:
    case base::Code::kUnknown:
    case base::Code::kAlreadyExists:
    case base::Code::kFailedPrecondition:
    case base::Code::kAborted:
    case base::Code::kInternal:
    case base::Code::kDataLoss:
      return {};
  }
  return {};
}

CommandResult Dispatch(App& app, const std::vector<std::string>& arguments) {
  EXPANSE_ASSIGN_OR_RETURN(const Invocation invocation,
                           Parse(RootCommand(), arguments, app.environment));
  if (invocation.version) {
    app.terminal.Out(fmt::format("expanse {}\n", base::Version()));
    return 0;
  }
  if (invocation.help) {
    app.terminal.Out(HelpText(invocation.path));
    return 0;
  }
  return invocation.arguments.command().run(app, invocation.arguments);
}

}  // namespace

int ReportFailure(App& app, const Failure& failure) {
  const std::string hint = failure.hint.empty() ? HintFor(app, failure.error) : failure.hint;
  // Usage errors already begin with the program's name.
  std::string message = failure.error.message;
  if (constexpr std::string_view kName = "expanse "; message.starts_with(kName))
    message.erase(0, kName.size());
  if (constexpr std::string_view kName = "expanse: "; message.starts_with(kName))
    message.erase(0, kName.size());
  app.terminal.Err(fmt::format("expanse: {}\n", base::EscapeForDisplay(message)));
  if (!hint.empty()) app.terminal.Err(fmt::format("Try: {}\n", base::EscapeForDisplay(hint)));
  return ExitCodeOf(failure.error.code);
}

std::string App::Variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::string App::StatePath(std::string_view name) const {
  return base::JoinPath(state_directory, name);
}

int ExitCodeOf(base::Code code) {
  switch (code) {
    case base::Code::kInvalidArgument:
    case base::Code::kOutOfRange:
      return 2;
    case base::Code::kNotFound:
      return 3;
    case base::Code::kUnauthenticated:
    case base::Code::kPermissionDenied:
      return 4;
    case base::Code::kUnavailable:
    case base::Code::kDeadlineExceeded:
      return 5;
    case base::Code::kAlreadyExists:
    case base::Code::kFailedPrecondition:
    case base::Code::kAborted:
      return 6;
    case base::Code::kCancelled:
      return 130;
    case base::Code::kUnknown:
    case base::Code::kResourceExhausted:
    case base::Code::kUnimplemented:
    case base::Code::kInternal:
    case base::Code::kDataLoss:
      return 1;
  }
  return 1;
}

int RunCli(App& app, const std::vector<std::string>& arguments) {
  const CommandResult result = Dispatch(app, arguments);
  int code = result ? *result : ReportFailure(app, result.error());
  if (auto flushed = app.terminal.Flush(); !flushed && code == 0)
    code = ReportFailure(app, Failure(flushed.error()));
  return code;
}

}  // namespace expanse::cli
