#include "cli/execution_render.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/pending_reason.h"
#include "cli/render.h"

namespace expanse::cli {
namespace {

std::string ExecutionLink(const std::string& console, const std::string& execution_id) {
  return console.empty() ? std::string() : fmt::format("{}/executions/{}", console, execution_id);
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

}  // namespace

std::string RenderExecutions(const App& app, const data::v1::ListExecutionsResponse& listed,
                             const FailureClasses& classes, const std::string& console) {
  std::vector<Column> columns = {{.header = "EXECUTION ID"},
                                 {.header = "JOB ID", .least = 8},
                                 {.header = "USER", .least = 6},
                                 {.header = "STATUS"},
                                 {.header = "OUTCOME", .optional = true},
                                 {.header = "STARTED"}};
  if (!console.empty()) columns.push_back({.header = "CONSOLE", .optional = true});
  // The last one, so that the others stay where they were.
  columns.push_back({.header = "CLASS", .least = 12});
  Table table(std::move(columns));
  for (const auto& execution : listed.executions()) {
    std::vector<Cell> row = {execution.execution_id(),
                             execution.native_id(),
                             execution.user(),
                             Cell(Label(execution.status()), TintOf(execution.status())),
                             Label(execution.outcome()),
                             ShowTime(app, execution.has_started_at(), execution.started_at())};
    if (!console.empty()) row.emplace_back(ExecutionLink(console, execution.execution_id()));
    const auto found = classes.find(execution.execution_id());
    row.push_back(found == classes.end() ? Cell("")
                                         : Cell(found->second.failure_class(), Tint::kBad));
    table.Add(std::move(row));
  }
  return table.Render(StyleOf(app));
}

std::string RenderExecution(const App& app, const data::v1::Execution& e,
                            const FailureClasses& classes, const std::string& console) {
  const PendingReason waits = e.status() == data::v1::EXECUTION_STATUS_QUEUED
                                  ? ExplainPending(e.native_reason())
                                  : PendingReason();
  // Nearly always the time of submission.
  const bool eligible =
      e.has_eligible_at() && e.eligible_at().seconds() != e.submitted_at().seconds();
  const auto diagnosed = classes.find(e.execution_id());
  const bool known = diagnosed != classes.end();
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
      {"DIAGNOSIS", Cell(known ? ShowFailureClass(diagnosed->second) : "", Tint::kBad)},
      {"MORE", known ? "expanse diagnose " + e.execution_id() : ""},
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

}  // namespace expanse::cli
