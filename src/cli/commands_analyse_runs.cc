// analyse diff, apply, list, show: what earlier analyses said.
#include <fmt/format.h>

#include "cli/analyse_apply.h"
#include "cli/analyse_render.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/lookup.h"
#include "cli/paging.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

constexpr std::size_t kRunsOnATerminal = 10;

constexpr OptionSpec kArtefact = {.name = "artefact",
                                  .alias = "artifact",
                                  .kind = ValueKind::kText,
                                  .value_name = "ID",
                                  .help = "The patch, as OPTIMISATION names it (also --artifact)"};
constexpr OptionSpec kJson = {
    .name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"};

constexpr OptionSpec kDiffOptions[] = {kArtefact, kJson};
constexpr OptionSpec kApplyOptions[] = {
    kArtefact,
    {.name = "file",
     .kind = ValueKind::kPath,
     .value_name = "PATH",
     .help = "Where the file is now",
     .default_text = "the path that was analysed"},
};
constexpr OptionSpec kListOptions[] = {
    {.name = "limit",
     .kind = ValueKind::kInt,
     .value_name = "N",
     .help = "At most this many runs",
     .default_text = "25",
     .min = 1,
     .max = 1'000'000},
    {.name = "compute",
     .kind = ValueKind::kText,
     .value_name = "COMPUTE",
     .help = "Only of this compute, by id or name"},
    {.name = "all-users",
     .kind = ValueKind::kFlag,
     .help = "Everybody's of the organisation, if you may see them"},
    kJson,
};
constexpr OptionSpec kShowOptions[] = {kJson};
constexpr PositionalSpec kRunId[] = {{.name = "RUN_ID", .help = "As `expanse analyse` printed it"}};

constexpr ExampleSpec kDiffExamples[] = {
    {"expanse analyse diff --artefact 0191e7a0-5c1f-7d2e-9b3a-2f60c4d1e8aa", "inspect the patch"}};
constexpr ExampleSpec kApplyExamples[] = {
    {"expanse analyse apply --artefact 0191e7a0-5c1f-7d2e-9b3a-2f60c4d1e8aa", "apply it here"},
    {"expanse analyse apply --artefact 0191e7a0-5c1f-7d2e-9b3a-2f60c4d1e8aa --file copy.slurm",
     "to a copy of the file"}};
constexpr ExampleSpec kListExamples[] = {{"expanse analyse list", "your 25 newest"}};
constexpr ExampleSpec kShowExamples[] = {
    {"expanse analyse show 0191e7a0-5c1f-7d2e-9b3a-2f60c4d1e8aa", "the answer again"}};

// Opens the planes and fetches what --artefact names.
std::expected<v1::Artifact, Failure> ArtefactOf(App& app, const Arguments& arguments,
                                                std::string_view command) {
  if (!arguments.Has("artefact")) {
    return FailUsage(fmt::format("{}: --artefact is missing", command),
                     fmt::format("expanse {} --artefact ID", command));
  }
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With(command));
  auto artefact = GetArtefact(*planes, arguments.Text("artefact"));
  if (artefact) return *std::move(artefact);
  const bool unknown = artefact.error().code == base::Code::kNotFound;
  return std::unexpected(
      Failure(std::move(artefact).error().With(command), unknown ? "expanse analyse FILE" : ""));
}

CommandResult Diff(App& app, const Arguments& arguments) {
  EXPANSE_ASSIGN_OR_RETURN(const v1::Artifact artefact, ArtefactOf(app, arguments, "analyse diff"));
  if (arguments.Flag("json")) return PrintJson(app, artefact);
  ShowDiff(app, artefact);
  return 0;
}

CommandResult Apply(App& app, const Arguments& arguments) {
  EXPANSE_ASSIGN_OR_RETURN(const v1::Artifact artefact,
                           ArtefactOf(app, arguments, "analyse apply"));
  if (auto applied = ApplyArtefact(app, artefact, arguments.Text("file")); !applied)
    return std::unexpected(std::move(applied).error());
  return 0;
}

CommandResult List(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("analyse list"));
  v1::ListRunsRequest request;
  request.set_kind(v1::RUN_KIND_ANALYSE);
  request.set_all_users(arguments.Flag("all-users"));
  if (arguments.Has("compute")) {
    EXPANSE_ASSIGN_OR_RETURN(*request.mutable_compute_id(),
                             ResolveCompute(*planes, arguments.Text("compute")));
  }
  auto response = ListPages<v1::ListRunsResponse>(
      std::move(request), static_cast<std::size_t>(arguments.Int("limit", 25)),
      [](auto& pages) { return pages.mutable_runs(); },
      [&](const v1::ListRunsRequest& page) {
        return planes->Intelligence<v1::ListRunsResponse>(
            "expanse.intelligence.v1.IntelligenceService.ListRuns", page);
      });
  if (!response) return std::unexpected(std::move(response).error().With("analyse list"));
  if (arguments.Flag("json")) return PrintJson(app, *response);
  std::vector<Column> columns = {{.header = "RUN ID"},
                                 {.header = "TARGET", .least = 8},
                                 {.header = "JOB NAME", .least = 8},
                                 {.header = "STATUS"},
                                 {.header = "ASKED"}};
  if (arguments.Flag("all-users")) columns.push_back({.header = "USER ID", .optional = true});
  Table table(std::move(columns));
  for (const v1::Run& run : response->runs()) {
    const bool failed = run.status() == v1::RUN_STATUS_FAILED;
    constexpr std::string_view kPrefix = "run_status_";
    std::string status = StatusLabel(run.status());
    if (status.starts_with(kPrefix)) status.erase(0, kPrefix.size());
    std::vector<Cell> row = {run.run_id(), run.target(), run.job_name(),
                             Cell(std::move(status), failed ? Tint::kBad : Tint::kNone),
                             ShowTime(app, run.has_created_at(), run.created_at())};
    if (arguments.Flag("all-users")) row.emplace_back(run.user_id());
    table.Add(std::move(row));
  }
  app.terminal.Out(table.Render(StyleOf(app)));
  if (response->runs().empty()) Say(app, "Nothing was analysed yet: expanse analyse FILE");
  return 0;
}

CommandResult Show(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("analyse show"));
  v1::GetRunRequest request;
  request.set_run_id(arguments.positionals().front());
  auto response = planes->Intelligence<v1::GetRunResponse>(
      "expanse.intelligence.v1.IntelligenceService.GetRun", request);
  if (!response) {
    const bool unknown = response.error().code == base::Code::kNotFound;
    return std::unexpected(Failure(std::move(response).error().With("analyse show"),
                                   unknown ? "expanse analyse list" : ""));
  }
  if (arguments.Flag("json")) return PrintJson(app, *response);
  const v1::Run& run = response->run();
  const bool on_terminal = app.terminal.OutIsTerminal();
  app.terminal.Out(
      RenderAnalyse({.target = run.target(),
                     .job_name = run.job_name(),
                     .run_id = run.run_id(),
                     .status = run.status(),
                     .cached = false,
                     .error = run.error()},
                    run.has_analyse() ? &run.analyse() : nullptr,
                    {.table = StyleOf(app), .most_runs = on_terminal ? kRunsOnATerminal : 0}));
  if (run.status() == v1::RUN_STATUS_QUEUED || run.status() == v1::RUN_STATUS_RUNNING)
    Say(app, "It is not done yet.");
  return 0;
}

}  // namespace

constinit const CommandSpec kAnalyseDiffCommand = {
    .name = "diff",
    .summary = "Print a patch",
    .description =
        "Prints the unified diff that an analysis proposed. Secrets in lines around the change "
        "read [redacted], as they were sent; `expanse analyse apply` knows them.",
    .options = kDiffOptions,
    .examples = kDiffExamples,
    .run = Diff};

constinit const CommandSpec kAnalyseApplyCommand = {
    .name = "apply",
    .summary = "Apply a patch to the file here",
    .description =
        "Changes the requested resources in the file, byte for byte the same elsewhere. A file "
        "that is not what was analysed any more is left alone (exit code 6), and so is one where "
        "the patch would change anything but resources. Mode, owner and links of the file are "
        "kept.",
    .options = kApplyOptions,
    .examples = kApplyExamples,
    .run = Apply};

constinit const CommandSpec kAnalyseListCommand = {
    .name = "list",
    .summary = "List earlier analyses, newest first",
    .description = "Lists your analyses. Those of others take the right to read all executions.",
    .options = kListOptions,
    .examples = kListExamples,
    .run = List};

constinit const CommandSpec kAnalyseShowCommand = {
    .name = "show",
    .summary = "Show an earlier analysis again",
    .description = "Shows the answer as it was given, with the evidence it used.",
    .options = kShowOptions,
    .positionals = kRunId,
    .examples = kShowExamples,
    .run = Show};

}  // namespace expanse::cli
