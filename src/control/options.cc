#include "control/options.h"

#include "base/crypto.h"
#include "base/text.h"

namespace expanse::control {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::SettingKind;
using base::Status;

constexpr std::size_t kMinPlaneSecret = 32;

std::chrono::seconds Seconds(const base::Settings& settings, std::string_view name) {
  return std::chrono::duration_cast<std::chrono::seconds>(settings.GetDuration(name));
}

Result<std::string> Url(const base::Settings& settings, std::string_view name) {
  const std::string& url = settings.GetString(name);
  if (url.empty()) return std::string();
  auto checked = CheckPublicUrl(url);
  if (!checked) return std::unexpected(std::move(checked).error().With(name));
  return checked;
}

Status AddPlaneSecrets(const base::Settings& settings, std::string_view name,
                       const std::string& plane, ControlOptions& options) {
  for (const std::string& secret : settings.GetList(name)) {
    if (secret.size() < kMinPlaneSecret) {
      return Fail(Code::kInvalidArgument, "control.plane_secret",
                  std::string(name) + ": a plane secret needs at least 32 characters");
    }
    AddPlaneSecret(options, plane, secret);
  }
  return {};
}

}  // namespace

std::vector<base::SettingSpec> ControlSettings() {
  const auto text = [](std::string name, std::string value, std::string help) {
    return base::SettingSpec{
        .name = std::move(name), .default_value = std::move(value), .help = std::move(help)};
  };
  const auto duration = [](std::string name, std::string value, std::string help, double min,
                           double max) {
    return base::SettingSpec{.name = std::move(name),
                             .kind = SettingKind::kDuration,
                             .default_value = std::move(value),
                             .help = std::move(help),
                             .min = min,
                             .max = max};
  };
  const auto secrets = [](std::string name, std::string help) {
    return base::SettingSpec{.name = std::move(name),
                             .kind = SettingKind::kList,
                             .help = std::move(help),
                             .secret = true};
  };
  constexpr double kDay = 86400;
  return {
      text("control.public_url", "",
           "URL under which CLI, daemons and browsers reach the control plane"),
      text("control.data_public_url", "", "URL under which they reach the data plane"),
      text("control.intelligence_public_url", "",
           "URL of the intelligence plane; empty where none runs"),
      text("control.console_url", "", "URL of the console; empty where none is served"),
      text("control.organisation_name", "Default",
           "name of the organisation that the first start makes"),
      text("control.owner_name", "owner", "name of its first Owner"),
      {.name = "control.owner_submit_users",
       .kind = SettingKind::kList,
       .help = "names under which schedulers know the first Owner, for --mine"},
      duration("control.access_token_life", "10m", "how long an access token is valid", 60, 3600),
      duration("control.session_life", "30d", "how long a session lives without being used", 3600,
               365 * kDay),
      duration("control.sign_in_link_life", "24h", "how long a one-time sign-in link is valid", 60,
               7 * kDay),
      duration("control.install_token_life", "1h", "how long an install token is valid", 60, kDay),
      duration("control.heartbeat_interval", "30s", "how often daemons report that they are alive",
               1, 3600),
      duration("control.degraded_after", "90s",
               "time without heartbeat until a compute is degraded", 1, kDay),
      duration("control.offline_after", "5m", "time without heartbeat until a compute is offline",
               1, 30 * kDay),
      secrets("control.data_plane_secrets",
              "secrets that data planes present, at least 32 characters each"),
      secrets("control.intelligence_plane_secrets", "the same for intelligence planes"),
      {.name = "control.key_file",
       .kind = SettingKind::kPath,
       .help =
           "PEM file with the signing keys, newest first; empty: keys are made and rotated in the "
           "state directory"},
      duration("control.key_rotation", "30d", "age at which a signing key is replaced", 3600,
               3650 * kDay),
  };
}

Result<ControlOptions> ControlOptionsFrom(const base::Settings& settings) {
  ControlOptions options;
  EXPANSE_ASSIGN_OR_RETURN(options.public_url, Url(settings, "control.public_url"));
  EXPANSE_ASSIGN_OR_RETURN(options.data_public_url, Url(settings, "control.data_public_url"));
  EXPANSE_ASSIGN_OR_RETURN(options.intelligence_public_url,
                           Url(settings, "control.intelligence_public_url"));
  EXPANSE_ASSIGN_OR_RETURN(options.console_url, Url(settings, "control.console_url"));
  options.organisation_name = settings.GetString("control.organisation_name");
  options.owner_name = settings.GetString("control.owner_name");
  options.owner_submit_users = settings.GetList("control.owner_submit_users");
  options.access_token_life = Seconds(settings, "control.access_token_life");
  options.session_life = Seconds(settings, "control.session_life");
  options.sign_in_link_life = Seconds(settings, "control.sign_in_link_life");
  options.install_token_life = Seconds(settings, "control.install_token_life");
  options.heartbeat_interval = settings.GetDuration("control.heartbeat_interval");
  options.thresholds.degraded_after = settings.GetDuration("control.degraded_after");
  options.thresholds.offline_after = settings.GetDuration("control.offline_after");
  if (options.thresholds.degraded_after <= options.heartbeat_interval ||
      options.thresholds.offline_after <= options.thresholds.degraded_after) {
    return Fail(Code::kInvalidArgument, "control.thresholds",
                "control.heartbeat_interval must be below control.degraded_after, and that below "
                "control.offline_after");
  }
  EXPANSE_RETURN_IF_ERROR(AddPlaneSecrets(settings, "control.data_plane_secrets", "data", options));
  EXPANSE_RETURN_IF_ERROR(
      AddPlaneSecrets(settings, "control.intelligence_plane_secrets", "intelligence", options));
  options.keys.file = settings.GetString("control.key_file");
  options.keys.rotate_after = Seconds(settings, "control.key_rotation");
  return options;
}

void AddPlaneSecret(ControlOptions& options, const std::string& plane, std::string_view secret) {
  options.plane_secret_hashes[plane].push_back(base::Sha256Hex(secret));
}

Result<std::string> CheckPublicUrl(std::string_view url) {
  const std::string_view whole = url;
  const auto bad = [&] {
    return Fail(
        Code::kInvalidArgument, "control.url",
        "\"" + base::EscapeForDisplay(whole) + "\" is not a URL like https://expanse.example.org");
  };
  for (std::string_view scheme : {"https://", "http://"}) {
    if (!url.starts_with(scheme)) continue;
    url.remove_prefix(scheme.size());
    for (const char c : url) {
      if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F || c == '?' || c == '#' || c == '@' ||
          c == '"' || c == '\\') {
        return bad();
      }
    }
    std::string checked(whole);
    while (checked.ends_with('/')) checked.pop_back();
    if (url.empty() || url.front() == '/' || url.front() == ':' || checked.size() <= scheme.size())
      return bad();
    return checked;
  }
  return bad();
}

}  // namespace expanse::control
