#include "server/options.h"

#include <fmt/format.h>

#include "base/text.h"

namespace expanse::server {
namespace {

using base::SettingKind;

base::Status ReadPlanes(const base::Settings& settings, ServerOptions& options) {
  options.run_control = options.run_data = options.run_intelligence = false;
  for (const std::string& plane : settings.GetList("planes")) {
    if (plane == "control") {
      options.run_control = true;
    } else if (plane == "data") {
      options.run_data = true;
    } else if (plane == "intelligence") {
      options.run_intelligence = true;
    } else {
      return base::Fail(
          base::Code::kInvalidArgument, "server.planes",
          fmt::format("planes: \"{}\" is not a plane; use control, data and intelligence",
                      base::EscapeForDisplay(plane)));
    }
  }
  if (!options.run_control && !options.run_data && !options.run_intelligence) {
    return base::Fail(base::Code::kInvalidArgument, "server.planes",
                      "planes: name at least one of control, data and intelligence");
  }
  return {};
}

PlaneLink ReadLink(const base::Settings& settings, const std::string& plane) {
  return {.control_url = settings.GetString(plane + ".control_url"),
          .plane_secret = settings.GetString(plane + ".plane_secret"),
          .control_ca_file = settings.GetString(plane + ".control_ca_file")};
}

base::Status ReadTls(const base::Settings& settings, ServerOptions& options) {
  const std::string& certificate = settings.GetString("tls.certificate");
  const std::string& key = settings.GetString("tls.key");
  if (certificate.empty() != key.empty()) {
    return base::Fail(base::Code::kInvalidArgument, "server.tls",
                      "TLS needs both --tls-certificate and --tls-key");
  }
  if (!certificate.empty()) options.http.tls = net::TlsFiles{certificate, key};
  options.http.allow_plain_remote = settings.GetBool("tls.allow_plain_remote");
  return {};
}

base::Status ReadListeners(const base::Settings& settings, ServerOptions& options) {
  EXPANSE_ASSIGN_OR_RETURN(options.control_listen,
                           ParseListenAddress(settings.GetString("control.listen")));
  EXPANSE_ASSIGN_OR_RETURN(options.data_listen,
                           ParseListenAddress(settings.GetString("data.listen")));
  EXPANSE_ASSIGN_OR_RETURN(options.intelligence_listen,
                           ParseListenAddress(settings.GetString("intelligence.listen")));
  for (const auto& [runs, listen] :
       {std::pair(options.run_control, options.control_listen),
        std::pair(options.run_data, options.data_listen),
        std::pair(options.run_intelligence, options.intelligence_listen)}) {
    if (runs && !options.http.tls && !options.http.allow_plain_remote && !IsLoopback(listen)) {
      return base::Fail(
          base::Code::kInvalidArgument, "server.tls",
          fmt::format("{} is not a loopback address: give --tls-certificate and --tls-key, or "
                      "--tls-allow-plain-remote where a proxy in front speaks TLS",
                      listen.address));
    }
  }
  return {};
}

void ReadHttp(const base::Settings& settings, ServerOptions& options) {
  options.http.io_threads = static_cast<int>(settings.GetInt("http.io_threads"));
  options.http.worker_threads = static_cast<int>(settings.GetInt("http.worker_threads"));
  options.http.queue_limit = static_cast<std::size_t>(settings.GetInt("http.queue_limit"));
  options.http.max_connections = static_cast<std::size_t>(settings.GetInt("http.max_connections"));
  options.http.max_body = settings.GetBytes("http.max_body").count;
  options.http.max_body_memory = settings.GetBytes("http.max_body_memory").count;
  options.cors_origins = settings.GetString("http.cors_origins");
  options.drain_timeout = settings.GetDuration("drain_timeout");
}

std::vector<base::SettingSpec> OwnSettings() {
  return {
      {.name = "state_dir",
       .kind = SettingKind::kPath,
       .default_value = "/var/lib/expanse-server",
       .help = "where databases, blobs and keys are kept"},
      {.name = "planes",
       .kind = SettingKind::kList,
       .default_value = "control,data,intelligence",
       .help = "planes to run here"},
      {.name = "control.listen",
       .default_value = "127.0.0.1:8440",
       .help = "address and port of the control plane"},
      {.name = "data.listen",
       .default_value = "127.0.0.1:8441",
       .help = "address and port of the data plane"},
      {.name = "intelligence.listen",
       .default_value = "127.0.0.1:8442",
       .help = "address and port of the intelligence plane"},
      {.name = "tls.certificate",
       .kind = SettingKind::kPath,
       .help = "PEM file with the certificate chain"},
      {.name = "tls.key",
       .kind = SettingKind::kPath,
       .help = "PEM file with the private key, not readable by others"},
      {.name = "tls.allow_plain_remote",
       .kind = SettingKind::kBool,
       .default_value = "false",
       .help = "serve plain HTTP beyond loopback (behind a proxy that speaks TLS)"},
      {.name = "http.io_threads",
       .kind = SettingKind::kInt,
       .default_value = "1",
       .help = "threads that read and write connections, per plane",
       .min = 1,
       .max = 64},
      {.name = "http.worker_threads",
       .kind = SettingKind::kInt,
       .default_value = "4",
       .help = "threads that answer requests, per plane",
       .min = 1,
       .max = 256},
      {.name = "http.queue_limit",
       .kind = SettingKind::kInt,
       .default_value = "256",
       .help = "requests that may wait for a thread; further ones are answered 503",
       .min = 1,
       .max = 1'000'000},
      {.name = "http.max_connections",
       .kind = SettingKind::kInt,
       .default_value = "4096",
       .help = "open connections per plane",
       .min = 1,
       .max = 1'000'000},
      {.name = "http.max_body",
       .kind = SettingKind::kBytes,
       .default_value = "16MiB",
       .help = "largest request body, as sent",
       .min = 1 << 20,
       .max = 1 << 30},
      {.name = "http.max_body_memory",
       .kind = SettingKind::kBytes,
       .default_value = "512MiB",
       .help = "large request bodies in memory at the same time, per plane; further ones are "
               "answered 503",
       .min = 1 << 20,
       .max = 1e12},
      {.name = "http.cors_origins", .help = "origins of consoles that may call, comma-separated"},
      {.name = "drain_timeout",
       .kind = SettingKind::kDuration,
       .default_value = "10s",
       .help = "how long requests in flight may take after SIGTERM",
       .min = 0,
       .max = 600},
      {.name = "data.control_url",
       .help = "how the data plane reaches control; empty: the one in this process"},
      {.name = "data.control_ca_file", .kind = SettingKind::kPath, .help = "CA file for that URL"},
      {.name = "data.plane_secret",
       .help = "secret that the data plane presents to control",
       .secret = true},
      {.name = "intelligence.control_url", .help = "the same for the intelligence plane"},
      {.name = "intelligence.control_ca_file",
       .kind = SettingKind::kPath,
       .help = "CA file for that URL"},
      {.name = "intelligence.plane_secret",
       .help = "secret that the intelligence plane presents to control",
       .secret = true},
      {.name = "log.level", .default_value = "info", .help = "debug, info, warn, error or off"},
      {.name = "log.format", .default_value = "text", .help = "text or json"},
  };
}

}  // namespace

std::vector<base::SettingSpec> ServerSettings() {
  std::vector<base::SettingSpec> specs = OwnSettings();
  for (auto& part :
       {control::ControlSettings(), data::DataSettings(), intelligence::IntelligenceSettings()})
    specs.insert(specs.end(), part.begin(), part.end());
  return specs;
}

base::Result<ServerOptions> ServerOptionsFrom(const base::Settings& settings) {
  ServerOptions options;
  options.state_dir = settings.GetString("state_dir");
  EXPANSE_RETURN_IF_ERROR(ReadPlanes(settings, options));
  EXPANSE_RETURN_IF_ERROR(ReadTls(settings, options));
  EXPANSE_RETURN_IF_ERROR(ReadListeners(settings, options));
  ReadHttp(settings, options);
  EXPANSE_ASSIGN_OR_RETURN(options.log_level, base::ParseLogLevel(settings.GetString("log.level")));
  const std::string& format = settings.GetString("log.format");
  if (format != "text" && format != "json") {
    return base::Fail(base::Code::kInvalidArgument, "server.log_format",
                      "log.format: use text or json");
  }
  options.log_format = format == "json" ? base::LogFormat::kJson : base::LogFormat::kText;
  EXPANSE_ASSIGN_OR_RETURN(options.control, control::ControlOptionsFrom(settings));
  options.data = data::DataOptionsFrom(settings);
  options.intelligence = intelligence::IntelligenceOptionsFrom(settings);
  options.data_link = ReadLink(settings, "data");
  options.intelligence_link = ReadLink(settings, "intelligence");
  return options;
}

}  // namespace expanse::server
