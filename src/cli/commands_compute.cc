// compute register, list, show, revoke, reissue.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/lookup.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "expanse/control/v1/compute_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"

namespace expanse::cli {
namespace {

constexpr OptionSpec kJson = {
    .name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"};
constexpr OptionSpec kYes = {.name = "yes", .kind = ValueKind::kFlag, .help = "Do not ask"};
constexpr PositionalSpec kCompute[] = {{.name = "COMPUTE", .help = "Id or name of the compute"}};

constexpr OptionSpec kRegisterOptions[] = {
    {.name = "type",
     .kind = ValueKind::kChoice,
     .value_name = "TYPE",
     .help = "What runs the workloads; asked for on a terminal",
     .choices = kSourceTypes},
    {.name = "name",
     .kind = ValueKind::kText,
     .value_name = "NAME",
     .help = "Name of the compute",
     .default_text = "made from the type and the time"},
    {.name = "team-id",
     .kind = ValueKind::kText,
     .value_name = "ID",
     .help = "Team that the compute belongs to"},
    kJson,
};
constexpr ExampleSpec kRegisterExamples[] = {
    {"expanse compute register", "asks for the type"},
    {"expanse compute register --type host --name gpu-box-3", "a machine without a scheduler"},
    {"expanse compute register --type host --json | jq -r .install_token.token", "for scripts"},
};
constexpr OptionSpec kListOptions[] = {
    {.name = "all", .kind = ValueKind::kFlag, .help = "Revoked computes too"}, kJson};
constexpr ExampleSpec kListExamples[] = {
    {"expanse compute list", "computes and whether their daemons are heard of"},
};
constexpr OptionSpec kShowOptions[] = {kJson};
constexpr ExampleSpec kShowExamples[] = {
    {"expanse compute show gpu-box-3", "one compute and the health of its collectors"}};
constexpr OptionSpec kRevokeOptions[] = {kYes, kJson};
constexpr ExampleSpec kRevokeExamples[] = {
    {"expanse compute revoke gpu-box-3", "asks before it does"}};
constexpr OptionSpec kReissueOptions[] = {kJson};
constexpr ExampleSpec kReissueExamples[] = {
    {"expanse compute reissue gpu-box-3", "after the host was rebuilt"}};

// For sh(1): as it is where that is safe, else in single quotes.
std::string ShellQuoted(const std::string& text) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@%+=,[]";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string::npos &&
      text.find('[') == std::string::npos) {
    return text;
  }
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string InstallCommand(common::v1::SourceType type, const std::string& control,
                           const std::string& data) {
  std::string command = "expanse compute install";
  if (type != common::v1::SOURCE_TYPE_HOST)
    command += fmt::format(" --type {} --write-config-only", Label(type));
  return fmt::format("{} --control-plane {} --data-plane {}", command, ShellQuoted(control),
                     ShellQuoted(data));
}

template <typename Response>  // RegisterComputeResponse or ReissueInstallTokenResponse
CommandResult PrintInstall(App& app, const Arguments& arguments, const Response& response) {
  if (arguments.Flag("json")) return PrintJson(app, response);
  const auto& compute = response.compute();
  const auto& token = response.install_token();
  app.terminal.Out(RenderFields(
      {{"COMPUTE ID", compute.compute_id()},
       {"NAME", compute.name()},
       {"TYPE", Label(compute.type())},
       {"INSTALL TOKEN", token.token()},
       {"TOKEN ENDS", ShowTime(app, token.has_expires_at(), token.expires_at())},
       {"RUN ON IT",
        InstallCommand(compute.type(), response.control_plane_url(), response.data_plane_url())}},
      StyleOf(app)));
  Say(app,
      "The token works once. The command asks for it without echo, or takes EXPANSE_INSTALL_TOKEN; "
      "keep it off command lines.");
  return 0;
}

std::expected<common::v1::SourceType, Failure> FindType(App& app, const Arguments& arguments) {
  std::string label = arguments.Text("type");
  if (label.empty()) {
    if (!app.terminal.CanAsk()) {
      return FailUsage("compute register: no type is given",
                       "expanse compute register --type host");
    }
    EXPANSE_ASSIGN_OR_RETURN(
        label, app.terminal.AskLine(
                   fmt::format("Type of compute ({}) [host]: ", fmt::join(kSourceTypes, ", "))));
    if (label.empty()) label = "host";
  }
  const auto type = ParseSourceType(base::ToLower(label));
  if (!type) {
    return FailUsage(fmt::format("compute register: no type '{}'", base::EscapeForDisplay(label)),
                     "expanse compute register --type host");
  }
  return *type;
}

CommandResult Register(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("compute register"));
  EXPANSE_ASSIGN_OR_RETURN(const auto type, FindType(app, arguments));
  control::v1::RegisterComputeRequest request;
  request.set_type(type);
  request.set_name(arguments.Text("name"));
  request.set_team_id(arguments.Text("team-id"));
  auto response = planes->Control<control::v1::RegisterComputeResponse>(
      "expanse.control.v1.ComputeService.RegisterCompute", request);
  if (!response) return std::unexpected(std::move(response).error().With("compute register"));
  return PrintInstall(app, arguments, *response);
}

CommandResult List(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("compute list"));
  control::v1::ListComputesRequest request;
  request.set_include_revoked(arguments.Flag("all"));
  auto response = planes->Control<control::v1::ListComputesResponse>(
      "expanse.control.v1.ComputeService.ListComputes", request);
  if (!response) return std::unexpected(std::move(response).error().With("compute list"));
  if (arguments.Flag("json")) return PrintJson(app, *response);
  Table table({{.header = "COMPUTE ID"},
               {.header = "NAME", .least = 8},
               {.header = "TYPE"},
               {.header = "STATE"},
               {.header = "LAST HEARTBEAT"},
               {.header = "DAEMON", .optional = true}});
  for (const auto& compute : response->computes()) {
    table.Add({compute.compute_id(), compute.name(), Label(compute.type()),
               Cell(Label(compute.state()), TintOf(compute.state())),
               ShowTime(app, compute.has_last_heartbeat_at(), compute.last_heartbeat_at()),
               compute.daemon_version()});
  }
  app.terminal.Out(table.Render(StyleOf(app)));
  if (response->computes().empty())
    Say(app, "No computes yet. `expanse compute register` adds one.");
  return 0;
}

std::string HealthTable(const App& app, const data::v1::GetComputeHealthResponse& health) {
  Table table({{.header = "NODE", .least = 8},
               {.header = "COLLECTOR"},
               {.header = "STATUS"},
               {.header = "CHECKED"},
               {.header = "REASON"},
               {.header = "MESSAGE", .least = 16}});
  for (const auto& node : health.nodes()) {
    for (const auto& row : node.rows()) {
      const bool good = row.status() == data::v1::HEALTH_STATUS_OK;
      const bool off = row.status() == data::v1::HEALTH_STATUS_DISABLED;
      table.Add({node.node(), row.collector(),
                 Cell(Label(row.status()), good  ? Tint::kGood
                                           : off ? Tint::kFaint
                                                 : Tint::kBad),
                 ShowTime(app, row.has_checked_at(), row.checked_at()), row.reason(),
                 row.message()});
    }
  }
  return table.Render(StyleOf(app));
}

CommandResult Show(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("compute show"));
  auto id = ResolveCompute(*planes, arguments.positionals().front());
  if (!id) return std::unexpected(std::move(id).error().With("compute show"));
  control::v1::GetComputeRequest request;
  request.set_compute_id(*id);
  auto response = planes->Control<control::v1::GetComputeResponse>(
      "expanse.control.v1.ComputeService.GetCompute", request);
  if (!response) return std::unexpected(std::move(response).error().With("compute show"));
  if (arguments.Flag("json")) return PrintJson(app, *response);
  const auto& compute = response->compute();
  app.terminal.Out(
      RenderFields({{"COMPUTE ID", compute.compute_id()},
                    {"NAME", compute.name()},
                    {"TYPE", Label(compute.type())},
                    {"STATE", Cell(Label(compute.state()), TintOf(compute.state()))},
                    {"TEAM ID", compute.team_id()},
                    {"DAEMON", compute.daemon_version()},
                    {"CREATED", ShowTime(app, compute.has_created_at(), compute.created_at())},
                    {"LAST HEARTBEAT",
                     ShowTime(app, compute.has_last_heartbeat_at(), compute.last_heartbeat_at())},
                    {"REVOKED", ShowTime(app, compute.has_revoked_at(), compute.revoked_at())}},
                   StyleOf(app)));
  data::v1::GetComputeHealthRequest health_request;
  health_request.set_compute_id(*id);
  const auto health = planes->Data<data::v1::GetComputeHealthResponse>(
      "expanse.data.v1.QueryService.GetComputeHealth", health_request);
  if (!health) {
    // The compute itself is known; its health is the data plane's to tell and may not have come
    // yet.
    if (health.error().code != base::Code::kNotFound)
      Warn(app, "health is not known: " + health.error().message);
  } else if (!health->nodes().empty()) {
    app.terminal.Out("\n" + HealthTable(app, *health));
  }
  return 0;
}

CommandResult Revoke(App& app, const Arguments& arguments) {
  const std::string& named = arguments.positionals().front();
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("compute revoke"));
  auto id = ResolveCompute(*planes, named);
  if (!id) return std::unexpected(std::move(id).error().With("compute revoke"));
  EXPANSE_ASSIGN_OR_RETURN(
      const bool yes,
      Confirm(app,
              fmt::format(
                  "Revoke compute {}? Its daemon is locked out within a minute; its history stays.",
                  base::EscapeForDisplay(named)),
              arguments.Flag("yes"), "expanse compute revoke"));
  if (!yes) {
    Say(app, "Nothing was revoked.");
    return 1;
  }
  control::v1::RevokeComputeRequest request;
  request.set_compute_id(*id);
  auto response = planes->Control<control::v1::RevokeComputeResponse>(
      "expanse.control.v1.ComputeService.RevokeCompute", request);
  if (!response) return std::unexpected(std::move(response).error().With("compute revoke"));
  if (arguments.Flag("json")) return PrintJson(app, *response);
  Say(app, fmt::format("Revoked compute {}.", *id));
  return 0;
}

CommandResult Reissue(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("compute reissue"));
  auto id = ResolveCompute(*planes, arguments.positionals().front());
  if (!id) return std::unexpected(std::move(id).error().With("compute reissue"));
  control::v1::ReissueInstallTokenRequest request;
  request.set_compute_id(*id);
  auto response = planes->Control<control::v1::ReissueInstallTokenResponse>(
      "expanse.control.v1.ComputeService.ReissueInstallToken", request);
  if (!response) return std::unexpected(std::move(response).error().With("compute reissue"));
  return PrintInstall(app, arguments, *response);
}

}  // namespace

constinit const CommandSpec kComputeRegisterCommand = {
    .name = "register",
    .summary = "Register a compute and get its install command",
    .description =
        "Registers a compute, state pending, and prints a single-use install token with the "
        "command to run on the target. The compute becomes active with its daemon's first "
        "heartbeat.",
    .options = kRegisterOptions,
    .examples = kRegisterExamples,
    .run = Register};

constinit const CommandSpec kComputeListCommand = {
    .name = "list",
    .summary = "List computes",
    .description =
        "Lists your organisation's computes. A state is pending, active, degraded, offline or "
        "revoked.",
    .options = kListOptions,
    .examples = kListExamples,
    .run = List};

constinit const CommandSpec kComputeShowCommand = {
    .name = "show",
    .summary = "Show one compute and its health",
    .description =
        "Shows a compute and, for each collector of its daemons, whether it works and why not.",
    .options = kShowOptions,
    .positionals = kCompute,
    .examples = kShowExamples,
    .run = Show};

constinit const CommandSpec kComputeRevokeCommand = {
    .name = "revoke",
    .summary = "Lock a compute out",
    .description =
        "Ends the compute's credential everywhere within a minute. What it captured stays "
        "readable.",
    .options = kRevokeOptions,
    .positionals = kCompute,
    .examples = kRevokeExamples,
    .run = Revoke};

constinit const CommandSpec kComputeReissueCommand = {
    .name = "reissue",
    .summary = "Get a new install token for a compute",
    .description =
        "Makes a new install token for a compute that keeps its identity and history, such as a "
        "host that was rebuilt. When the token is exchanged the old credential stops at once.",
    .options = kReissueOptions,
    .positionals = kCompute,
    .examples = kReissueExamples,
    .run = Reissue};

}  // namespace expanse::cli
