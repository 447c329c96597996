// executions, executions show, logs.
#include <fmt/format.h>

#include <array>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/execution_render.h"
#include "cli/failure_classes.h"
#include "cli/lookup.h"
#include "cli/paging.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kStatuses[] = {"queued", "running",   "succeeded",
                                          "failed", "cancelled", "unknown"};
constexpr std::string_view kOutcomes[] = {"success", "failure",       "cancelled",
                                          "timeout", "out_of_memory", "unknown"};
constexpr std::string_view kStreams[] = {"stdout", "stderr", "combined"};

constexpr OptionSpec kOptions[] = {
    {.name = "limit",
     .kind = ValueKind::kInt,
     .value_name = "N",
     .help = "At most this many executions",
     .default_text = "25",
     .min = 1,
     .max = 1'000'000},
    {.name = "status",
     .kind = ValueKind::kChoice,
     .value_name = "STATUS",
     .help = "Only this status",
     .choices = kStatuses},
    {.name = "outcome",
     .kind = ValueKind::kChoice,
     .value_name = "OUTCOME",
     .help = "Only this outcome",
     .choices = kOutcomes},
    {.name = "user",
     .kind = ValueKind::kText,
     .value_name = "USER",
     .help = "Only what this user submitted"},
    {.name = "mine", .kind = ValueKind::kFlag, .help = "Only what you submitted"},
    {.name = "compute",
     .kind = ValueKind::kText,
     .value_name = "COMPUTE",
     .help = "Only this compute, by id or name"},
    {.name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"},
};
constexpr EnvironmentSpec kEnvironment[] = {
    {"EXPANSE_CONSOLE_URL", "Console for the links [default: as the control plane says]"},
};
constexpr ExampleSpec kExamples[] = {
    {"expanse executions", "the 25 newest"},
    {"expanse executions --status failed --limit 100", "failed runs"},
    {"expanse executions --outcome out_of_memory --mine", "your runs that ran out of memory"},
    {"expanse executions --json | jq -r '.executions[].execution_id'", "for scripts"},
};

constexpr PositionalSpec kExecution[] = {
    {.name = "EXECUTION", .help = "Execution id, or the scheduler's job id"}};
constexpr OptionSpec kShowOptions[] = {
    {.name = "source-type",
     .kind = ValueKind::kChoice,
     .value_name = "TYPE",
     .help = "Take the argument as a job id of this scheduler",
     .choices = kSourceTypes},
    {.name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"},
};
constexpr ExampleSpec kShowExamples[] = {
    {"expanse executions show 0191e7a0-5c1f-8d2e-9b3a-2f60c4d1e8aa", "by execution id"},
    {"expanse executions show 41982_7", "the newest run with this job id"},
};
constexpr OptionSpec kLogsOptions[] = {
    {.name = "stream",
     .kind = ValueKind::kChoice,
     .value_name = "STREAM",
     .help = "Only this stream",
     .choices = kStreams},
    kShowOptions[0],
    kShowOptions[1],
};
constexpr ExampleSpec kLogsExamples[] = {
    {"expanse logs 0191e7a0-5c1f-8d2e-9b3a-2f60c4d1e8aa", "the end of what it printed"},
    {"expanse logs 41982 --stream stderr | grep -i error", "one stream, by job id"},
};

// The names under which schedulers know the caller; where the server has none, the login name.
std::vector<std::string> MySubmitUsers(App& app, const Session& session) {
  if (!session.submit_users.empty()) return session.submit_users;
  std::string name = app.Variable("USER");
  if (name.empty()) name = app.Variable("LOGNAME");
  if (name.empty()) return {};
  Say(app, fmt::format("The server knows no scheduler user of yours; looking for '{}'.", name));
  return {name};
}

std::expected<data::v1::ListExecutionsRequest, Failure> BuildRequest(App& app, Planes& planes,
                                                                     const Arguments& arguments) {
  data::v1::ListExecutionsRequest request;
  if (arguments.Has("status")) request.set_status(*ParseStatus(arguments.Text("status")));
  if (arguments.Has("outcome")) request.set_outcome(*ParseOutcome(arguments.Text("outcome")));
  if (arguments.Has("user") && arguments.Flag("mine")) {
    return FailUsage("executions: --user and --mine exclude each other", "pass one of them");
  }
  if (arguments.Has("user")) request.add_users(base::ToValidUtf8(arguments.Text("user")));
  if (arguments.Flag("mine")) {
    const auto users = MySubmitUsers(app, planes.session());
    if (users.empty()) {
      return FailWith(base::Code::kFailedPrecondition, "cli.mine",
                      "executions: --mine: neither the server nor $USER says who you are",
                      "expanse executions --user NAME");
    }
    for (const std::string& user : users) request.add_users(user);
  }
  if (arguments.Has("compute")) {
    EXPANSE_ASSIGN_OR_RETURN(*request.mutable_compute_id(),
                             ResolveCompute(planes, arguments.Text("compute")));
  }
  return request;
}

std::string ConsoleUrl(const App& app, const Session& session) {
  const std::string given = NormaliseUrl(app.Variable("EXPANSE_CONSOLE_URL"));
  return given.empty() ? session.console_url : given;
}

// What has not ended has no failure to be named; what ended well may have one that it hides.
template <typename Executions>
std::vector<std::string> ThatEnded(const Executions& executions) {
  std::vector<std::string> ids;
  for (const data::v1::Execution& execution : executions) {
    if (execution.status() != data::v1::EXECUTION_STATUS_QUEUED &&
        execution.status() != data::v1::EXECUTION_STATUS_RUNNING)
      ids.push_back(execution.execution_id());
  }
  return ids;
}

CommandResult Executions(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("executions"));
  EXPANSE_ASSIGN_OR_RETURN(auto request, BuildRequest(app, *planes, arguments));
  auto response = ListPages<data::v1::ListExecutionsResponse>(
      std::move(request), static_cast<std::size_t>(arguments.Int("limit", 25)),
      [](auto& pages) { return pages.mutable_executions(); },
      [&](const data::v1::ListExecutionsRequest& page) {
        return planes->Data<data::v1::ListExecutionsResponse>(
            "expanse.data.v1.QueryService.ListExecutions", page);
      });
  if (!response) return std::unexpected(std::move(response).error().With("executions"));
  if (arguments.Flag("json")) return PrintJson(app, *response);
  const FailureClasses classes =
      FindFailureClasses(app, *planes, ThatEnded(response->executions()));
  app.terminal.Out(RenderExecutions(app, *response, classes, ConsoleUrl(app, planes->session())));
  if (response->executions().empty()) Say(app, "No executions match.");
  return 0;
}

ExecutionChoice ChoiceOf(const Arguments& arguments) {
  ExecutionChoice choice{.id_or_native = arguments.positionals().front()};
  if (arguments.Has("source-type"))
    choice.source_type = *ParseSourceType(arguments.Text("source-type"));
  return choice;
}

CommandResult Show(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("executions show"));
  auto id = ResolveExecution(*planes, ChoiceOf(arguments));
  if (!id) return std::unexpected(std::move(id).error().With("executions show"));
  data::v1::GetExecutionRequest request;
  request.set_execution_id(*id);
  auto response = planes->Data<data::v1::GetExecutionResponse>(
      "expanse.data.v1.QueryService.GetExecution", request);
  if (!response) return std::unexpected(std::move(response).error().With("executions show"));
  if (arguments.Flag("json")) return PrintJson(app, *response);
  const auto& execution = response->execution();
  const FailureClasses classes = FindFailureClasses(app, *planes, ThatEnded(std::array{execution}));
  app.terminal.Out(RenderExecution(app, execution, classes, ConsoleUrl(app, planes->session())));
  return 0;
}

void PrintStream(App& app, const data::v1::LogTailView& tail) {
  const auto ended = [](const std::string& text) {
    return text.empty() || text.ends_with('\n') ? text : text + "\n";
  };
  if (!tail.first_error().empty()) {
    Say(app,
        fmt::format("==> {}: first error, at byte {}", tail.stream(), tail.first_error_offset()));
    app.terminal.Out(ended(Printable(app, tail.first_error())));
  }
  Say(app,
      fmt::format("==> {}: last {} of {}{}", tail.stream(), base::FormatBytes({tail.data().size()}),
                  base::FormatBytes({tail.total_bytes()}),
                  tail.redactions() > 0 ? fmt::format(", {} redactions", tail.redactions()) : ""));
  app.terminal.Out(ended(Printable(app, tail.data())));
}

CommandResult Logs(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("logs"));
  auto id = ResolveExecution(*planes, ChoiceOf(arguments));
  if (!id) return std::unexpected(std::move(id).error().With("logs"));
  data::v1::GetLogTailRequest request;
  request.set_execution_id(*id);
  request.set_stream(arguments.Text("stream"));
  auto response = planes->Data<data::v1::GetLogTailResponse>(
      "expanse.data.v1.QueryService.GetLogTail", request);
  if (!response) return std::unexpected(std::move(response).error().With("logs"));
  if (arguments.Flag("json")) return PrintJson(app, *response);
  for (const auto& tail : response->streams()) PrintStream(app, tail);
  if (response->streams().empty()) Say(app, "No output was captured.");
  return 0;
}

constexpr const CommandSpec* kChildren[] = {&kExecutionsShowCommand};

}  // namespace

constinit const CommandSpec kExecutionsCommand = {
    .name = "executions",
    .summary = "List what ran, newest first",
    .description =
        "Lists executions of your organisation. The submitting user is the scheduler's and may "
        "be unknown; such executions match neither --user nor --mine.\n\n"
        "CLASS is why an execution failed, as far as that was diagnosed: the server does so within "
        "seconds of the end, and `expanse diagnose` tells the rest. A successful one has a class "
        "where somebody asked and its output says that the state is wrong. --json is the data "
        "plane's "
        "answer and has no classes.",
    .options = kOptions,
    .environment = kEnvironment,
    .examples = kExamples,
    .children = kChildren,
    .run = Executions};

constinit const CommandSpec kExecutionsShowCommand = {
    .name = "show",
    .summary = "Show one execution in full",
    .description =
        "Shows everything that is known about one execution, and of a failed one its diagnosis. "
        "What is unknown is left out; --json is the data plane's answer and has no diagnosis.",
    .options = kShowOptions,
    .positionals = kExecution,
    .examples = kShowExamples,
    .run = Show};

constinit const CommandSpec kLogsCommand = {
    .name = "logs",
    .summary = "Print the captured end of an execution's output",
    .description =
        "Prints the end of each output stream as it was captured, secrets removed on the node, and "
        "the first error region when the end no longer reaches it. Headings go to standard error.",
    .options = kLogsOptions,
    .positionals = kExecution,
    .examples = kLogsExamples,
    .run = Logs};

}  // namespace expanse::cli
