// What an operator can set about the control plane.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/settings.h"
#include "net/key_ring.h"
#include "net/token.h"

namespace expanse::control {

// When a compute that stopped sending heartbeats counts as degraded and as offline.
struct StateThresholds {
  std::chrono::milliseconds degraded_after{90'000};
  std::chrono::milliseconds offline_after{300'000};
};

struct ControlOptions {
  std::string
      public_url;  // without trailing slash; the server main may fill it in from its listener
  std::string data_public_url;
  std::string intelligence_public_url;  // empty: no intelligence plane
  std::string console_url;              // empty: no console

  std::string organisation_name = "Default";
  std::string owner_name = "owner";
  std::vector<std::string> owner_submit_users;

  std::chrono::seconds access_token_life{600};
  std::chrono::seconds session_life{30 * 24 * 3600};  // since the last refresh
  std::chrono::seconds sign_in_link_life{24 * 3600};
  std::chrono::seconds install_token_life{3600};
  std::chrono::milliseconds heartbeat_interval{30'000};
  StateThresholds thresholds;

  // Per plane name the SHA-256 (hex) of every secret that is accepted: two while one is replaced.
  std::map<std::string, std::vector<std::string>> plane_secret_hashes;

  net::KeyRingOptions keys;  // `directory` or `file` must be set
  net::TokenPolicy tokens;
};

std::vector<base::SettingSpec> ControlSettings();
// The options that `settings` (declared by ControlSettings) give. keys.directory is left to the
// server main, which knows the state directory. Fails with control.url, control.thresholds or
// control.plane_secret (shorter than 32 characters).
base::Result<ControlOptions> ControlOptionsFrom(const base::Settings& settings);

// Adds a secret that `plane` may present, for planes that run in this same process.
void AddPlaneSecret(ControlOptions& options, const std::string& plane, std::string_view secret);

// "https://host/prefix/" -> "https://host/prefix". Fails with control.url for anything but an http
// or https URL with a host and without query, fragment or user.
base::Result<std::string> CheckPublicUrl(std::string_view url);

}  // namespace expanse::control
