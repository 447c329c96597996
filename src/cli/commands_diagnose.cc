// diagnose: why an execution failed, after it ran.
#include <fmt/format.h>

#include "base/crypto.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/diagnose_render.h"
#include "cli/lookup.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "collect/logs/redact.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

constexpr std::size_t kLargestSource = std::size_t{256} << 10;

constexpr PositionalSpec kExecution[] = {
    {.name = "EXECUTION",
     .help = "Execution id of `expanse executions`, or the scheduler's own job id"}};
constexpr OptionSpec kOptions[] = {
    {.name = "source-type",
     .kind = ValueKind::kChoice,
     .value_name = "TYPE",
     .help = "EXECUTION is a job id of this scheduler",
     .choices = kSourceTypes},
    {.name = "source",
     .kind = ValueKind::kPath,
     .value_name = "FILE",
     .help = "Source file to take as evidence besides what was captured; secrets are taken out",
     .repeatable = true},
    {.name = "compute",
     .kind = ValueKind::kText,
     .value_name = "COMPUTE",
     .help = "Where it ran, by id or name"},
    {.name = "prompt",
     .kind = ValueKind::kFlag,
     .help = "Print only the prompt for your coding agent"},
    {.name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"},
    {.name = "no-cache",
     .kind = ValueKind::kFlag,
     .help = "Ask anew instead of taking the answer of an earlier run"},
};
constexpr ExampleSpec kExamples[] = {
    {"expanse diagnose 0191e7a0-1111-8000-8000-00000000aaaa", "by execution id"},
    {"expanse diagnose 41982 --source-type slurm", "by the scheduler's job id"},
    {"expanse diagnose 41982 --prompt | wl-copy", "the prompt, into the clipboard"},
    {"expanse diagnose 41982 --source train.py", "with a file that was not captured"},
    {"expanse diagnose 41982 --json | jq -r .result.display.failure_class", "for scripts"},
};

std::expected<v1::DiagnoseRequest, Failure> BuildRequest(Planes& planes,
                                                         const Arguments& arguments) {
  v1::DiagnoseRequest request;
  ExecutionChoice choice{.id_or_native = arguments.positionals().front(),
                         .source_type = common::v1::SOURCE_TYPE_UNSPECIFIED,
                         .compute_id = {}};
  if (arguments.Has("source-type"))
    choice.source_type = ParseSourceType(arguments.Text("source-type"))
                             .value_or(common::v1::SOURCE_TYPE_UNSPECIFIED);
  if (arguments.Has("compute")) {
    EXPANSE_ASSIGN_OR_RETURN(choice.compute_id, ResolveCompute(planes, arguments.Text("compute")));
  }
  EXPANSE_ASSIGN_OR_RETURN(*request.mutable_execution_id(), ResolveExecution(planes, choice));
  for (const std::string& path : arguments.Texts("source")) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kLargestSource));
    v1::TargetFile* file = request.add_files();
    file->set_path(base::ToValidUtf8(path));
    file->set_data(collect::Redact(text).text);
    file->set_role("argument");
  }
  request.set_no_cache(arguments.Flag("no-cache"));
  return request;
}

CommandResult PrintPrompt(App& app, const v1::DiagnoseResult& result) {
  if (result.agent_prompt().empty()) {
    Say(app, "diagnose: there is no prompt: " + result.root_cause());
    return 1;
  }
  app.terminal.Out(Printable(app, result.agent_prompt()));
  return 0;
}

CommandResult OfferPrompt(App& app, const v1::DiagnoseResult& result) {
  if (result.agent_prompt().empty() || !app.terminal.CanAsk() || !app.terminal.OutIsTerminal())
    return 0;
  while (true) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string answer,
                             app.terminal.AskLine("Suggested prompt for your agent? [y/n] "));
    const std::string lower = base::ToLower(base::Trim(answer));
    if (lower == "n" || lower == "no") return 0;
    if (lower == "y" || lower == "yes") return PrintPrompt(app, result);
  }
}

// Names of computes are the control plane's: the plane that answers knows the id.
void NameCompute(Planes& planes, v1::DiagnoseDisplay* display) {
  if (!base::IsUuid(display->compute())) return;
  const std::string name = NameOfCompute(planes, display->compute());
  if (!name.empty()) display->set_compute(name);
}

CommandResult Diagnose(App& app, const Arguments& arguments) {
  if (arguments.Flag("prompt") && arguments.Flag("json"))
    return FailUsage("diagnose: --prompt and --json exclude each other", "pass one of them");
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("diagnose"));
  EXPANSE_ASSIGN_OR_RETURN(const auto request, BuildRequest(*planes, arguments));
  auto response = planes->Intelligence<v1::DiagnoseResponse>(
      "expanse.intelligence.v1.IntelligenceService.Diagnose", request);
  if (!response) return std::unexpected(std::move(response).error().With("diagnose"));
  if (arguments.Flag("prompt")) return PrintPrompt(app, response->result());
  NameCompute(*planes, response->mutable_result()->mutable_display());
  if (arguments.Flag("json")) return PrintJson(app, *response);
  app.terminal.Out(RenderDiagnosis(response->result(), response->cached(), StyleOf(app)));
  return OfferPrompt(app, response->result());
}

}  // namespace

constinit const CommandSpec kDiagnoseCommand = {
    .name = "diagnose",
    .summary = "Explain why an execution failed",
    .description =
        "Names the root cause of a failed execution with the evidence for it: output, states, "
        "limits and what was used, sources, and similar executions. What the evidence does not "
        "tell is said to be unknown; nothing is changed and no fix is applied.\n\n"
        "A failed execution comes with a prompt for your own coding agent, which is asked to check "
        "the cause in your repository first. Output of programs stands in it as data between "
        "fences.",
    .options = kOptions,
    .positionals = kExecution,
    .examples = kExamples,
    .run = Diagnose};

}  // namespace expanse::cli
