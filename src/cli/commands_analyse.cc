// analyse: what workloads will need, before they run.
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/analyse_apply.h"
#include "cli/analyse_render.h"
#include "cli/analyse_target.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/lookup.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "collect/logs/redact.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;

constexpr std::size_t kRunsOnATerminal = 10;  // named in a row of EVIDENCE
constexpr double kMostCores = 1e6;

constexpr PositionalSpec kFiles[] = {{.name = "FILE",
                                      .help = "Batch script, source file, Kubernetes manifest or "
                                              "Nomad jobspec; - is standard input; ./list is a "
                                              "file with the name of a sub-command",
                                      .repeated = true,
                                      .is_file = true}};
constexpr OptionSpec kOptions[] = {
    {.name = "compute",
     .kind = ValueKind::kText,
     .value_name = "COMPUTE",
     .help = "Where it will run, by id or name",
     .default_text = "all that you may see"},
    {.name = "cpu",
     .kind = ValueKind::kText,
     .value_name = "CORES",
     .help = "Requested cores, such as 16, 0.5 or 500m, instead of the file's"},
    {.name = "memory",
     .kind = ValueKind::kBytes,
     .value_name = "SIZE",
     .help = "Requested memory, such as 16GiB, instead of the file's",
     .min = 1},
    {.name = "gpu",
     .kind = ValueKind::kInt,
     .value_name = "N",
     .help = "Requested GPUs, instead of the file's",
     .min = 0,
     .max = 1'000'000},
    {.name = "walltime",
     .kind = ValueKind::kDuration,
     .value_name = "DURATION",
     .help = "Requested walltime, such as 90s, 2h or 1-02:00:00, instead of the file's",
     .min = 1},
    {.name = "workload",
     .kind = ValueKind::kText,
     .value_name = "NAME",
     .help = "Which workload of a file that has several",
     .default_text = "the largest"},
    {.name = "var",
     .kind = ValueKind::kText,
     .value_name = "NAME=VALUE",
     .help = "Value of a Nomad variable",
     .repeatable = true},
    {.name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON, one object a file"},
    {.name = "no-cache",
     .kind = ValueKind::kFlag,
     .help = "Ask anew instead of taking the answer of an earlier run"},
    {.name = "no-patch",
     .kind = ValueKind::kFlag,
     .help = "Numbers only: no patch is made, OPTIMISATION reads none"},
    {.name = "yes",
     .kind = ValueKind::kFlag,
     .help = "Apply the patch without asking; not with --json, --no-patch or --queue"},
    {.name = "queue",
     .kind = ValueKind::kFlag,
     .help = "Do not wait for the answer; `expanse analyse show RUN_ID` has it later"},
};
constexpr ExampleSpec kExamples[] = {
    {"expanse analyse train.slurm", "SLURM batch script"},
    {"expanse analyse train.py", "source file"},
    {"expanse analyse job.yaml --workload train", "Kubernetes manifest with several workloads"},
    {"expanse analyse job.nomad --var memory=4096", "Nomad jobspec with a variable"},
    {"expanse analyse train.slurm --memory 16GiB --walltime 2h", "with other requests"},
    {"expanse analyse *.slurm --json | jq -r .result.right_size.class", "for scripts"},
};

// "16", "0.5", "500m" as Kubernetes writes thousandths.
std::expected<double, Failure> ParseCores(const std::string& text) {
  const bool milli = text.ends_with('m');
  const auto number = base::ParseDouble(milli ? text.substr(0, text.size() - 1) : text);
  const double cores = number.value_or(0) / (milli ? 1000 : 1);
  if (!(cores > 0) || cores > kMostCores) {
    return FailUsage(
        fmt::format("analyse: --cpu '{}': not a number of cores such as 16, 0.5 or 500m", text),
        "expanse analyse --help");
  }
  return cores;
}

std::expected<v1::RequestedOverride, Failure> RequestedOf(const Arguments& arguments) {
  v1::RequestedOverride requested;
  if (arguments.Has("cpu")) {
    EXPANSE_ASSIGN_OR_RETURN(const double cores, ParseCores(arguments.Text("cpu")));
    requested.set_cpu_cores(cores);
  }
  if (arguments.Has("memory")) requested.set_memory_bytes(arguments.Bytes("memory").count);
  if (arguments.Has("gpu")) {
    requested.set_gpu_count(static_cast<std::uint32_t>(arguments.Int("gpu", 0)));
  }
  if (arguments.Has("walltime")) {
    requested.set_walltime_seconds(
        std::chrono::ceil<std::chrono::seconds>(arguments.Duration("walltime")).count());
  }
  return requested;
}

// A variable's value can be a password: the server has no use for that.
std::expected<void, Failure> AddVariables(const Arguments& arguments, v1::AnalyseRequest* request) {
  for (const std::string& pair : arguments.Texts("var")) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return FailUsage("analyse: --var needs NAME=VALUE", "expanse analyse job.nomad --var x=1");
    }
    const std::string redacted = collect::Redact(pair).text;
    const bool kept = redacted.starts_with(pair.substr(0, equals + 1));
    (*request->mutable_variables())[pair.substr(0, equals)] = base::ToValidUtf8(
        kept ? redacted.substr(equals + 1) : std::string(collect::kRedactionMark));
  }
  return {};
}

// Who asks, as this machine and its schedulers know them.
std::string LocalUser(const App& app) {
  for (const char* name : {"USER", "LOGNAME"}) {
    if (std::string user = app.Variable(name); !user.empty()) return user;
  }
  const passwd* entry = ::getpwuid(::geteuid());  // NOLINT(concurrency-mt-unsafe): one thread
  return entry != nullptr ? entry->pw_name : "";
}

// What all files of one invocation share.
std::expected<v1::AnalyseRequest, Failure> BuildRequest(App& app, Planes& planes,
                                                        const Arguments& arguments) {
  v1::AnalyseRequest request;
  EXPANSE_ASSIGN_OR_RETURN(*request.mutable_requested(), RequestedOf(arguments));
  if (auto added = AddVariables(arguments, &request); !added)
    return std::unexpected(std::move(added).error());
  if (arguments.Has("compute")) {
    EXPANSE_ASSIGN_OR_RETURN(*request.mutable_compute_id(),
                             ResolveCompute(planes, arguments.Text("compute")));
  }
  request.set_local_user(base::ToValidUtf8(LocalUser(app)));
  request.set_workload(base::ToValidUtf8(arguments.Text("workload")));
  request.set_no_cache(arguments.Flag("no-cache"));
  request.set_no_patch(arguments.Flag("no-patch"));
  request.set_queue(arguments.Flag("queue"));
  return request;
}

std::expected<void, Failure> CheckFlags(const Arguments& arguments) {
  const auto& files = arguments.positionals();
  const auto inputs = std::count(files.begin(), files.end(), "-");
  if (inputs > 1) return FailUsage("analyse: standard input can be read once");
  if (!arguments.Flag("yes")) return {};
  for (const char* other : {"json", "no-patch", "queue"}) {
    if (arguments.Flag(other)) {
      return FailUsage(fmt::format("analyse: --yes and --{} exclude each other", other),
                       "pass one of them");
    }
  }
  if (inputs > 0) {
    return FailUsage("analyse: --yes: standard input is no file that could be changed",
                     "expanse analyse FILE --yes");
  }
  return {};
}

void AddFile(const SentFile& file, v1::TargetFile* to) {
  to->set_path(base::ToValidUtf8(file.path));
  to->set_data(file.data);
  to->set_role(file.role);
}

base::Result<v1::AnalyseResponse> Ask(App& app, Planes& planes, v1::AnalyseRequest request,
                                      const std::string& path) {
  EXPANSE_ASSIGN_OR_RETURN(const AnalyseTarget target, ReadTarget(path, [&](std::size_t limit) {
                             return app.terminal.ReadBytes(limit);
                           }));
  AddFile(target.file, request.mutable_target());
  for (const SentFile& file : target.files) AddFile(file, request.add_files());
  if (path == "-") request.set_no_patch(true);
  return planes.Intelligence<v1::AnalyseResponse>(
      "expanse.intelligence.v1.IntelligenceService.Analyse", request);
}

// True to apply, false for later; asks until it is told.
base::Result<bool> AskToApply(App& app) {
  while (true) {
    EXPANSE_ASSIGN_OR_RETURN(
        const std::string answer,
        app.terminal.AskLine("Apply the resource recommendations automatically? [y/n] "));
    const std::string lower = base::ToLower(base::Trim(answer));
    if (lower == "y" || lower == "yes") return true;
    if (lower == "n" || lower == "no") return false;
  }
}

// `path`: the user's word for the file, not the server's.
CommandResult OfferPatch(App& app, Planes& planes, const Arguments& arguments,
                         const v1::AnalyseResult& result, const std::string& path) {
  const std::string& id = result.right_size().artifact_id();
  if (id.empty()) {
    if (arguments.Flag("yes")) Say(app, "There is nothing to apply.");
    return 0;
  }
  if (!arguments.Flag("yes")) {
    if (!app.terminal.CanAsk()) return 0;
    EXPANSE_ASSIGN_OR_RETURN(const bool apply, AskToApply(app));
    if (!apply) {
      Say(app, "Later:");
      Say(app, fmt::format("  expanse analyse diff --artefact {}", id));
      Say(app, fmt::format("  expanse analyse apply --artefact {}", id));
      return 0;
    }
  }
  EXPANSE_ASSIGN_OR_RETURN(const v1::Artifact artefact, GetArtefact(planes, id));
  ShowDiff(app, artefact);
  if (auto applied = ApplyArtefact(app, artefact, path); !applied)
    return std::unexpected(std::move(applied).error());
  return 0;
}

CommandResult AnalyseOne(App& app, Planes& planes, const Arguments& arguments,
                         const v1::AnalyseRequest& request, const std::string& path) {
  auto response = Ask(app, planes, request, path);
  if (!response) return std::unexpected(std::move(response).error().With("analyse"));
  if (arguments.Flag("json")) return PrintJson(app, *response);
  const bool on_terminal = app.terminal.OutIsTerminal();
  app.terminal.Out(
      RenderAnalyse({.target = path,
                     .job_name = {},
                     .run_id = response->run_id(),
                     .status = response->status(),
                     .cached = response->cached(),
                     .error = {}},
                    response->has_result() ? &response->result() : nullptr,
                    {.table = StyleOf(app), .most_runs = on_terminal ? kRunsOnATerminal : 0}));
  if (!response->has_result()) {
    Say(app, fmt::format("Later: expanse analyse show {}", response->run_id()));
    return 0;
  }
  if (arguments.Flag("no-patch") || path == "-") return 0;
  return OfferPatch(app, planes, arguments, response->result(), path);
}

// One that the next file would meet too.
bool EndsAll(base::Code code) {
  return code == base::Code::kUnauthenticated || code == base::Code::kPermissionDenied ||
         code == base::Code::kUnavailable || code == base::Code::kDeadlineExceeded ||
         code == base::Code::kCancelled;
}

CommandResult Analyse(App& app, const Arguments& arguments) {
  if (auto flags = CheckFlags(arguments); !flags) return std::unexpected(std::move(flags).error());
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("analyse"));
  EXPANSE_ASSIGN_OR_RETURN(const auto request, BuildRequest(app, *planes, arguments));
  int code = 0;
  bool first = true;
  for (const std::string& path : arguments.positionals()) {
    if (!std::exchange(first, false) && !arguments.Flag("json")) app.terminal.Out("\n");
    auto done = AnalyseOne(app, *planes, arguments, request, path);
    if (done) continue;
    if (EndsAll(done.error().error.code)) return done;
    if (arguments.positionals().size() == 1) return done;
    const int failed = ReportFailure(app, done.error());
    if (code == 0) code = failed;
  }
  return code;
}

constexpr const CommandSpec* kChildren[] = {&kAnalyseDiffCommand, &kAnalyseApplyCommand,
                                            &kAnalyseListCommand, &kAnalyseShowCommand};

}  // namespace

constinit const CommandSpec kAnalyseCommand = {
    .name = "analyse",
    .alias = "analyze",
    .summary = "Recommend resources before a workload runs",
    .description =
        "Tells from what ran before, or from the source alone, which resources a workload will "
        "need, how likely it completes with them, what threatens it as it is written, and which "
        "runs say so. `analyze` is another spelling.\n\n"
        "Nothing is changed without leave: where the recommendation differs from the file, a patch "
        "is kept, and on a terminal you are asked whether to apply it. Only requested resources "
        "are "
        "changed, never code.\n\n"
        "The file and the files that it names are sent to your server, secrets taken out.",
    .options = kOptions,
    .positionals = kFiles,
    .examples = kExamples,
    .children = kChildren,
    .run = Analyse};

}  // namespace expanse::cli
