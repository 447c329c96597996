// Settings of expanse-server: its own, and those of the planes that it runs.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/settings.h"
#include "control/options.h"
#include "data/options.h"
#include "intelligence/options.h"
#include "net/http_server.h"
#include "server/listen.h"

namespace expanse::server {

// How a plane reaches control. An empty URL: the control plane of this process.
struct PlaneLink {
  std::string control_url;
  std::string plane_secret;
  std::string control_ca_file;
};

struct ServerOptions {
  std::string state_dir;
  bool run_control = true;
  bool run_data = true;
  bool run_intelligence = true;
  ListenAddress control_listen;
  ListenAddress data_listen;
  ListenAddress intelligence_listen;
  net::HttpServerOptions
      http;  // what all listeners share; name, address and port are set per plane
  std::string cors_origins;
  std::chrono::milliseconds drain_timeout{10'000};
  base::LogLevel log_level = base::LogLevel::kInfo;
  base::LogFormat log_format = base::LogFormat::kText;

  control::ControlOptions control;
  data::DataOptions data;
  intelligence::IntelligenceOptions intelligence;
  PlaneLink data_link;
  PlaneLink intelligence_link;
};

std::vector<base::SettingSpec> ServerSettings();
// Fails with server.* (planes, listen, tls), settings.* or control.*.
base::Result<ServerOptions> ServerOptionsFrom(const base::Settings& settings);

}  // namespace expanse::server
