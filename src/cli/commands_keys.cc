// keys create, list, revoke.
#include <fmt/format.h>

#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "expanse/control/v1/key_service.pb.h"

namespace expanse::cli {
namespace {

constexpr OptionSpec kCreateOptions[] = {
    {.name = "name",
     .kind = ValueKind::kText,
     .value_name = "NAME",
     .help = "What the key is for",
     .default_text = "cli"},
    {.name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON, secret included"},
};
constexpr ExampleSpec kCreateExamples[] = {
    {"expanse keys create --name laptop", "print a new key, once"},
    {"(umask 077; expanse keys create > key.txt)", "straight into a file that only you can read"},
};
constexpr OptionSpec kJsonOnly[] = {
    {.name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"},
};
constexpr ExampleSpec kListExamples[] = {{"expanse keys list", "your keys, without their secrets"}};
constexpr PositionalSpec kKeyId[] = {{.name = "KEY_ID", .help = "As `expanse keys list` shows it"}};
constexpr OptionSpec kRevokeOptions[] = {
    {.name = "yes", .kind = ValueKind::kFlag, .help = "Do not ask"},
};
constexpr ExampleSpec kRevokeExamples[] = {
    {"expanse keys revoke 0191e7a0-5c1f-7d2e-9b3a-2f60c4d1e8aa --yes",
     "end a key and its sessions"},
};

CommandResult Create(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("keys create"));
  control::v1::CreateKeyRequest request;
  request.set_name(arguments.Text("name", "cli"));
  auto response = planes->Control<control::v1::CreateKeyResponse>(
      "expanse.control.v1.KeyService.CreateKey", request);
  if (!response) return std::unexpected(std::move(response).error().With("keys create"));
  if (arguments.Flag("json")) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string json, ToJson(*response));
    app.terminal.Out(json);
    return 0;
  }
  app.terminal.Out(response->secret() + "\n");
  Say(app, fmt::format("Key {} is shown this once; keep it where only you can read it.",
                       response->key().key_id()));
  return 0;
}

CommandResult List(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("keys list"));
  auto response = planes->Control<control::v1::ListKeysResponse>(
      "expanse.control.v1.KeyService.ListKeys", control::v1::ListKeysRequest());
  if (!response) return std::unexpected(std::move(response).error().With("keys list"));
  if (arguments.Flag("json")) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string json, ToJson(*response));
    app.terminal.Out(json);
    return 0;
  }
  Table table({{.header = "KEY ID"},
               {.header = "NAME", .least = 8},
               {.header = "HINT"},
               {.header = "CREATED"},
               {.header = "LAST USED"},
               {.header = "REVOKED"}});
  for (const auto& key : response->keys()) {
    table.Add({key.key_id(), key.name(), key.hint(),
               ShowTime(app, key.has_created_at(), key.created_at()),
               ShowTime(app, key.has_last_used_at(), key.last_used_at()),
               ShowTime(app, key.has_revoked_at(), key.revoked_at())});
  }
  app.terminal.Out(table.Render(StyleOf(app)));
  if (response->keys().empty()) Say(app, "No keys yet. `expanse keys create` makes one.");
  return 0;
}

CommandResult Revoke(App& app, const Arguments& arguments) {
  const std::string& key_id = arguments.positionals().front();
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("keys revoke"));
  EXPANSE_ASSIGN_OR_RETURN(const bool yes,
                           Confirm(app, fmt::format("Revoke key {} and end its sessions?", key_id),
                                   arguments.Flag("yes"), "expanse keys revoke"));
  if (!yes) {
    Say(app, "Nothing was revoked.");
    return 1;
  }
  control::v1::RevokeKeyRequest request;
  request.set_key_id(key_id);
  auto response = planes->Control<control::v1::RevokeKeyResponse>(
      "expanse.control.v1.KeyService.RevokeKey", request);
  if (!response) return std::unexpected(std::move(response).error().With("keys revoke"));
  Say(app, fmt::format("Revoked key {}.", key_id));
  return 0;
}

}  // namespace

constinit const CommandSpec kKeysCreateCommand = {
    .name = "create",
    .summary = "Make a personal key",
    .description =
        "Prints the new key on standard output, this once; the server keeps only a hash of it.",
    .options = kCreateOptions,
    .examples = kCreateExamples,
    .run = Create};

constinit const CommandSpec kKeysListCommand = {
    .name = "list",
    .summary = "List your personal keys",
    .description = "Lists your keys with a hint of each, enough to tell them apart.",
    .options = kJsonOnly,
    .examples = kListExamples,
    .run = List};

constinit const CommandSpec kKeysRevokeCommand = {
    .name = "revoke",
    .summary = "End a personal key",
    .description = "Ends the key and every session that was made with it.",
    .options = kRevokeOptions,
    .positionals = kKeyId,
    .examples = kRevokeExamples,
    .run = Revoke};

}  // namespace expanse::cli
