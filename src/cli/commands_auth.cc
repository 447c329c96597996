// login, logout, status, refresh.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "cli/sign_in_link.h"
#include "expanse/control/v1/auth_service.pb.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kKeyPrefix = "exp_user_";

constexpr OptionSpec kLoginOptions[] = {
    {.name = "api-key",
     .kind = ValueKind::kText,
     .value_name = "KEY",
     .help = "Your personal key; - reads it from standard input",
     .environment = "EXPANSE_API_KEY"},
    {.name = "sign-in-link",
     .kind = ValueKind::kText,
     .value_name = "LINK",
     .help = "The one-time link that the server printed at its first start; - reads it from "
             "standard input",
     .environment = "EXPANSE_SIGN_IN_LINK"},
    {.name = "control-plane",
     .kind = ValueKind::kUrl,
     .value_name = "URL",
     .help = "Control plane to sign in to",
     .default_text = "the link's, else the session's",
     .environment = "EXPANSE_API_URL"},
    {.name = "organisation-id",
     .kind = ValueKind::kText,
     .value_name = "ID",
     .help = "Organisation to work in",
     .default_text = "your own"},
};
constexpr ExampleSpec kLoginExamples[] = {
    {"expanse login --control-plane https://expanse.example.org", "asks for the key, without echo"},
    {"expanse login --api-key - < key.txt", "key from a file, control plane of the last session"},
    {"EXPANSE_API_KEY=exp_user_… expanse login", "key from the environment"},
    {"expanse login --sign-in-link -",
     "redeem the link of the first start, given on standard input"},
};

constexpr OptionSpec kRefreshOptions[] = {
    {.name = "organisation-id",
     .kind = ValueKind::kText,
     .value_name = "ID",
     .help = "Switch the session to this organisation"},
};
constexpr ExampleSpec kRefreshExamples[] = {
    {"expanse refresh", "a new access token now"},
    {"expanse refresh --organisation-id 0191e7a0-5c1f-7d2e-9b3a-2f60c4d1e8aa",
     "work in another organisation"},
};
constexpr OptionSpec kStatusOptions[] = {
    {.name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"},
};
constexpr ExampleSpec kStatusExamples[] = {
    {"expanse status", "who am I, and where"},
    {"expanse status --json | jq -r .identity.user_id", "for scripts"},
};
constexpr ExampleSpec kLogoutExamples[] = {
    {"expanse logout", "end the session here and on the server"}};

struct Credential {
  std::string api_key;
  std::string sign_in_token;
  std::string link_url;  // the control plane that a link names
};

std::expected<Credential, Failure> TakeSecret(std::string secret, bool is_link) {
  secret = std::string(base::Trim(secret));
  Credential credential;
  if (is_link || secret.find("://") != std::string::npos) {
    EXPANSE_ASSIGN_OR_RETURN(SignInLink link, ParseSignInLink(secret));
    credential.sign_in_token = std::move(link.token);
    credential.link_url = std::move(link.control_plane_url);
    return credential;
  }
  if (!secret.starts_with(kKeyPrefix) || secret.size() == kKeyPrefix.size()) {
    return FailUsage("login: that is not a personal key: it begins with exp_user_",
                     "expanse login --help");
  }
  credential.api_key = std::move(secret);
  return credential;
}

std::expected<Credential, Failure> FindCredential(App& app, const Arguments& arguments) {
  const bool has_key = arguments.Has("api-key");
  const bool has_link = arguments.Has("sign-in-link");
  if (has_key && has_link) {
    return FailUsage("login: both a key and a sign-in link are given", "pass one of them");
  }
  if (has_key || has_link) {
    std::string secret = arguments.Text(has_key ? "api-key" : "sign-in-link");
    if (secret == "-") {
      EXPANSE_ASSIGN_OR_RETURN(secret, app.terminal.ReadInput());
    }
    return TakeSecret(std::move(secret), has_link);
  }
  if (!app.terminal.CanAsk()) {
    return FailUsage("login: no key is given", "EXPANSE_API_KEY=exp_user_… expanse login");
  }
  EXPANSE_ASSIGN_OR_RETURN(std::string secret,
                           app.terminal.AskSecret("Personal key (exp_user_…) or sign-in link: "));
  return TakeSecret(std::move(secret), /*is_link=*/false);
}

std::expected<std::string, Failure> FindControlPlane(App& app, const Arguments& arguments,
                                                     const Credential& credential) {
  if (arguments.Has("control-plane")) return NormaliseUrl(arguments.Text("control-plane"));
  if (!credential.link_url.empty()) return credential.link_url;
  // A damaged session must not keep anybody from signing in again.
  if (const auto session = StoreOf(app).Load(); session && *session)
    return (*session)->control_plane_url;
  return FailUsage("login: no control plane is given and there is no earlier session",
                   "expanse login --control-plane https://expanse.example.org");
}

CommandResult Login(App& app, const Arguments& arguments) {
  EXPANSE_ASSIGN_OR_RETURN(const Credential credential, FindCredential(app, arguments));
  EXPANSE_ASSIGN_OR_RETURN(const std::string url, FindControlPlane(app, arguments, credential));
  WarnIfPlain(app, url);
  control::v1::LoginRequest request;
  if (!credential.api_key.empty()) {
    request.set_api_key(credential.api_key);
  } else {
    request.set_sign_in_token(credential.sign_in_token);
  }
  request.set_organisation_id(arguments.Text("organisation-id"));
  auto session = SignIn(app, url, request);
  if (!session) {
    std::string hint;
    if (session.error().code == base::Code::kUnauthenticated) {
      hint = credential.api_key.empty()
                 ? "a link works once; sign in with a key"
                 : "check the key; `expanse keys list` shows those that work";
    }
    return std::unexpected(
        Failure(std::move(session).error().With("signing in to " + url), std::move(hint)));
  }
  Say(app, fmt::format("Signed in to {} as {}.",
                       session->organisation_name.empty() ? url : session->organisation_name,
                       session->user_name));
  if (!credential.sign_in_token.empty()) {
    Say(app, "The link is spent. `expanse keys create` makes a key for the next time.");
  }
  return 0;
}

CommandResult Logout(App& app, const Arguments&) {
  auto planes = Planes::Open(app);
  if (!planes) {
    if (planes.error().reason == "session.malformed") {
      EXPANSE_RETURN_IF_ERROR(StoreOf(app).Remove());
      Say(app, "Removed the damaged session.");
      return 0;
    }
    if (planes.error().reason != "session.none")
      return std::unexpected(std::move(planes).error().With("logout"));
    Say(app, "Nobody was signed in.");
    return 0;
  }
  if (auto status = planes->SignOut(); !status) {
    Warn(app,
         "the session is removed here, but the server was not told: " + status.error().message);
    return 0;
  }
  Say(app, "Signed out.");
  return 0;
}

CommandResult Status(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("status"));
  auto who = planes->Control<control::v1::WhoAmIResponse>("expanse.control.v1.AuthService.WhoAmI",
                                                          control::v1::WhoAmIRequest());
  if (!who) return std::unexpected(std::move(who).error().With("status"));
  if (arguments.Flag("json")) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string json, ToJson(*who));
    app.terminal.Out(json);
    return 0;
  }
  const auto& identity = who->identity();
  const Session& session = planes->session();
  google::protobuf::Timestamp refresh_ends;
  ToTimestamp(session.refresh_expires_at, &refresh_ends);
  app.terminal.Out(RenderFields(
      {{"USER", identity.user_name()},
       {"USER ID", identity.user_id()},
       {"ORGANISATION", identity.organisation_name()},
       {"ORGANISATION ID", identity.organisation_id()},
       {"ROLE", identity.role()},
       {"SUBMITS AS", fmt::format("{}", fmt::join(identity.submit_users(), ", "))},
       {"CONTROL PLANE", planes->control_plane_url()},
       {"DATA PLANE", session.data_plane_url},
       {"INTELLIGENCE PLANE", session.intelligence_plane_url},
       {"CONSOLE", session.console_url},
       {"TOKEN ENDS", ShowTime(app, who->has_access_expires_at(), who->access_expires_at())},
       {"SESSION ENDS", ShowTime(app, true, refresh_ends)}},
      StyleOf(app)));
  return 0;
}

CommandResult Refresh(App& app, const Arguments& arguments) {
  auto planes = Planes::Open(app);
  if (!planes) return std::unexpected(std::move(planes).error().With("refresh"));
  if (auto status = planes->Renew(arguments.Text("organisation-id")); !status) {
    return std::unexpected(std::move(status).error().With("refresh"));
  }
  const Session& session = planes->session();
  Say(app, fmt::format("New access token for {}, good until {}.", session.organisation_name,
                       base::FormatRfc3339(session.access_expires_at)));
  return 0;
}

}  // namespace

constinit const CommandSpec kLoginCommand = {
    .name = "login",
    .summary = "Sign in with a personal key",
    .description =
        "Exchanges your personal key for a session, which is kept in ~/.expanse/session.json "
        "(mode 0600). The key itself is not kept. Without a key, an environment variable or "
        "standard input, it is asked for without echo.\n\nThe one-time link that a server prints "
        "at its "
        "first start signs the first owner in; with `expanse keys create` they make a key.",
    .options = kLoginOptions,
    .examples = kLoginExamples,
    .run = Login};

constinit const CommandSpec kLogoutCommand = {
    .name = "logout",
    .summary = "End the session",
    .description = "Ends the session on the server and removes it from this machine.",
    .examples = kLogoutExamples,
    .run = Logout};

constinit const CommandSpec kStatusCommand = {
    .name = "status",
    .summary = "Show who is signed in, and where",
    .description = "Asks the control plane who the session belongs to.",
    .options = kStatusOptions,
    .examples = kStatusExamples,
    .run = Status};

constinit const CommandSpec kRefreshCommand = {
    .name = "refresh",
    .summary = "Renew the access token",
    .description =
        "Commands renew the short-lived access token themselves. This forces a new one, or "
        "switches the session to another organisation.",
    .options = kRefreshOptions,
    .examples = kRefreshExamples,
    .run = Refresh};

}  // namespace expanse::cli
