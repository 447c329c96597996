// The identity of a compute on its host: who it is, its long-lived credential and where its planes
// are. Written by `expanse compute install`, read by expanse-daemon. One JSON object, mode 0600:
//
//   {"version": 1, "compute_id": "…", "compute_name": "…", "organisation_id": "…", "type": "host",
//    "credential": "exp_compute_…", "control_plane_url": "https://…", "data_plane_url":
//    "https://…"}
//
// Readers ignore keys that they do not know, so that later versions can add some. Free functions,
// thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::net {

struct ComputeIdentity {
  std::string compute_id;
  std::string compute_name;
  std::string organisation_id;
  std::string type;  // "slurm", "kubernetes", "nomad", "host"
  std::string credential;
  std::string control_plane_url;
  std::string data_plane_url;
  bool operator==(const ComputeIdentity&) const = default;
};

std::string EncodeComputeIdentity(const ComputeIdentity& identity);
// Fails with identity.malformed, naming the key that is missing or wrong, never its value; with
// identity.version for a version this program does not know.
base::Result<ComputeIdentity> DecodeComputeIdentity(std::string_view json);

// Fails with identity.missing (not_found) without a file, identity.permissions (permission_denied)
// when others may read or write it or it is neither ours nor root's, and as DecodeComputeIdentity.
// Messages name the command that helps.
base::Result<ComputeIdentity> ReadComputeIdentity(const std::string& path);
// Replaces the file in one step, mode 0600; directories that are missing are made, mode 0700.
base::Status WriteComputeIdentity(const std::string& path, const ComputeIdentity& identity);

// ~/.expanse/config.json of `home`.
std::string DefaultComputeIdentityPath(std::string_view home);

// Where the daemon's identity file is: `flag` if not empty, else EXPANSE_DAEMON_CONFIG of
// `environment`, else ~/.expanse/config.json; for root /etc/expanse/config.json comes before that
// if it exists, or if neither does.
std::string ComputeIdentityPath(std::string_view flag,
                                const std::map<std::string, std::string>& environment,
                                bool is_root);

}  // namespace expanse::net
