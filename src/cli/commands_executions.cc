// executions, executions show, logs.
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/lookup.h"
#include "cli/paging.h"
#include "cli/parse.h"
#include "cli/pending_reason.h"
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

std::string ExecutionLink(const std::string& console, const std::string& execution_id) {
  return console.empty() ? std::string() : fmt::format("{}/executions/{}", console, execution_id);
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
  const std::string console = ConsoleUrl(app, planes->session());
  std::vector<Column> columns = {{.header = "EXECUTION ID"},     {.header = "JOB ID", .least = 8},
                                 {.header = "USER", .least = 6}, {.header = "STATUS"},
                                 {.header = "OUTCOME"},          {.header = "STARTED"}};
  if (!console.empty()) columns.push_back({.header = "CONSOLE", .optional = true});
  Table table(std::move(columns));
  for (const auto& execution : response->executions()) {
    std::vector<Cell> row = {execution.execution_id(),
                             execution.native_id(),
                             execution.user(),
                             Cell(Label(execution.status()), TintOf(execution.status())),
                             Label(execution.outcome()),
                             ShowTime(app, execution.has_started_at(), execution.started_at())};
    if (!console.empty()) row.emplace_back(ExecutionLink(console, execution.execution_id()));
    table.Add(std::move(row));
  }
  app.terminal.Out(table.Render(StyleOf(app)));
  if (response->executions().empty()) Say(app, "No executions match.");
  return 0;
}

std::string ShowResources(const data::v1::Resources& resources) {
  std::vector<std::string> parts;
  if (resources.has_cpu_cores()) parts.push_back(fmt::format("{} cores", resources.cpu_cores()));
  if (resources.has_memory_bytes())
    parts.push_back(base::FormatBytes({resources.memory_bytes()}) + " memory");
  if (resources.has_gpu_count()) {
    parts.push_back(fmt::format("{} GPU{}", resources.gpu_count(),
                                resources.gpu_type().empty() ? "" : " " + resources.gpu_type()));
  }
  if (resources.has_node_count()) parts.push_back(fmt::format("{} nodes", resources.node_count()));
  if (resources.has_task_count()) parts.push_back(fmt::format("{} tasks", resources.task_count()));
  if (resources.has_walltime_seconds()) {
    parts.push_back(base::FormatDuration(std::chrono::seconds(resources.walltime_seconds())) +
                    " walltime");
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ShowUsage(const data::v1::Usage& usage) {
  std::vector<std::string> parts;
  if (usage.has_cpu_seconds())
    parts.push_back(fmt::format("{:.2f} cpu seconds", usage.cpu_seconds()));
  if (usage.has_memory_peak_bytes()) {
    parts.push_back(fmt::format(
        "{} peak memory{}", base::FormatBytes({usage.memory_peak_bytes()}),
        usage.memory_peak_basis().empty() ? "" : " (" + usage.memory_peak_basis() + ")"));
  }
  if (usage.has_io_read_bytes())
    parts.push_back(base::FormatBytes({usage.io_read_bytes()}) + " read");
  if (usage.has_io_write_bytes())
    parts.push_back(base::FormatBytes({usage.io_write_bytes()}) + " written");
  if (usage.oom_kills() > 0)
    parts.push_back(
        fmt::format("{} OOM kill{}", usage.oom_kills(), usage.oom_kills() == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

template <typename Message>  // Execution or ExecutionStep
std::string Runtime(const App& app, const Message& run) {
  if (!run.has_started_at()) return {};
  const bool ended = run.has_ended_at();
  if (!ended && run.status() != data::v1::EXECUTION_STATUS_RUNNING) return {};
  const base::WallTime end = ended ? FromTimestamp(run.ended_at()) : app.clock.Now();
  const auto span =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - FromTimestamp(run.started_at()));
  if (span.count() < 0) return {};
  const bool precise = span < std::chrono::minutes(1);
  return base::FormatDuration(precise ? span : std::chrono::floor<std::chrono::seconds>(span));
}

std::string ShowSteps(const App& app, const data::v1::Execution& e) {
  if (e.steps().empty()) return {};
  Table table({{.header = "STEP"},
               {.header = "NAME", .least = 8},
               {.header = "STATUS"},
               {.header = "STATE", .optional = true},
               {.header = "EXIT", .align = Align::kRight},
               {.header = "SIGNAL", .align = Align::kRight},
               {.header = "RUNTIME", .align = Align::kRight},
               {.header = "TASKS", .align = Align::kRight},
               {.header = "CPU SECONDS", .align = Align::kRight},
               {.header = "PEAK MEMORY", .align = Align::kRight}});
  for (const auto& step : e.steps()) {
    table.Add(
        {step.id(), step.name(), Cell(Label(step.status()), TintOf(step.status())),
         step.native_state(), step.has_exit_code() ? std::to_string(step.exit_code()) : "",
         step.has_signal() && step.signal() != 0 ? std::to_string(step.signal()) : "",
         Runtime(app, step), step.has_task_count() ? std::to_string(step.task_count()) : "",
         step.used().has_cpu_seconds() ? fmt::format("{:.2f}", step.used().cpu_seconds()) : "",
         step.used().has_memory_peak_bytes() ? base::FormatBytes({step.used().memory_peak_bytes()})
                                             : ""});
  }
  return "\n" + table.Render(StyleOf(app));
}

std::string ShowExecution(const App& app, const data::v1::Execution& e,
                          const std::string& console) {
  const PendingReason waits = e.status() == data::v1::EXECUTION_STATUS_QUEUED
                                  ? ExplainPending(e.native_reason())
                                  : PendingReason();
  // Nearly always the time of submission.
  const bool eligible =
      e.has_eligible_at() && e.eligible_at().seconds() != e.submitted_at().seconds();
  std::vector<Field> fields = {
      {"EXECUTION ID", e.execution_id()},
      {"JOB ID", e.native_id()},
      {"PART OF", e.parent_native_id()},
      {"RESTARTS", e.restart_count() > 0 ? std::to_string(e.restart_count()) : ""},
      {"SOURCE", Label(e.source_type())},
      {"COMPUTE ID", e.compute_id()},
      {"NAME", e.name()},
      {"USER", e.user()},
      {"ACCOUNT", e.account()},
      {"QUEUE", e.queue()},
      {"QOS", e.qos()},
      {"COMMAND", fmt::format("{}", fmt::join(e.command(), " "))},
      {"DIRECTORY", e.working_directory()},
      {"NODES", fmt::format("{}", fmt::join(e.nodes(), ", "))},
      {"COMMENT", e.comment()},
      {"STATUS", Cell(Label(e.status()), TintOf(e.status()))},
      {"OUTCOME", Label(e.outcome())},
      {"STATE", e.native_state()},
      {"REASON", e.native_reason()},
      {"WAITS FOR", waits.waits_for == e.native_reason() ? "" : waits.waits_for},
      {"WHAT HELPS", waits.advice},
      {"EXIT CODE", e.has_exit_code() ? std::to_string(e.exit_code()) : ""},
      {"SIGNAL", e.has_signal() && e.signal() != 0 ? std::to_string(e.signal()) : ""},
      {"SUBMITTED", ShowTime(app, e.has_submitted_at(), e.submitted_at())},
      {"ELIGIBLE", eligible ? ShowTime(app, true, e.eligible_at()) : ""},
      {"EXPECTED START", ShowTime(app, e.has_expected_start_at(), e.expected_start_at())},
      {"STARTED", ShowTime(app, e.has_started_at(), e.started_at())},
      {"ENDED", ShowTime(app, e.has_ended_at(), e.ended_at())},
      {"RUNTIME", Runtime(app, e)},
      {"SUSPENDED", e.suspended_seconds() > 0
                        ? base::FormatDuration(std::chrono::seconds(e.suspended_seconds()))
                        : ""},
      {"REQUESTED", ShowResources(e.requested())},
      {"ALLOCATED", ShowResources(e.allocated())},
      {"USED", ShowUsage(e.used())},
      {"STDOUT", e.stdout_path()},
      {"STDERR", e.stderr_path()},
      {"SOURCES", e.bundle_hash()},
      {"CONSOLE", ExecutionLink(console, e.execution_id())}};
  for (const std::string& note : e.capture_notes()) fields.push_back({"NOTE", note});
  return RenderFields(fields, StyleOf(app)) + ShowSteps(app, e);
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
  app.terminal.Out(ShowExecution(app, response->execution(), ConsoleUrl(app, planes->session())));
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
        "be unknown; such executions match neither --user nor --mine.",
    .options = kOptions,
    .environment = kEnvironment,
    .examples = kExamples,
    .children = kChildren,
    .run = Executions};

constinit const CommandSpec kExecutionsShowCommand = {
    .name = "show",
    .summary = "Show one execution in full",
    .description =
        "Shows everything that is known about one execution. What is unknown is left out.",
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
