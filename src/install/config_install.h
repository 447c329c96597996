// What `expanse compute install` does where only the daemon's configuration is written: plan
// (checks that change nothing), apply (exchange the token, write the file), verify (the credential
// works). A token is single-use, so nothing is exchanged before every check that can be made has
// passed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "evidence/execution.h"
#include "net/compute_identity.h"
#include "net/connect_client.h"

namespace expanse::install {

struct ConfigInstallRequest {
  std::string control_plane_url;
  std::string data_plane_url;  // empty: as the control plane says
  std::string config_path;
  evidence::SourceType type = evidence::SourceType::kUnspecified;  // unspecified: the token's own
};

// Opens a client for a plane; the caller gives timeouts and user agent.
using OpenPlane =
    std::function<base::Result<std::unique_ptr<net::ConnectClient>>(const std::string& url)>;

// Checked and complete: nothing in it is left to find out.
struct ConfigInstallPlan {
  std::string control_plane_url;
  std::string data_plane_url;
  std::string config_path;
  evidence::SourceType type = evidence::SourceType::kUnspecified;
};

// Fails with install.existing (already_exists) when the file holds an identity (its compute id is
// in the message), install.unreadable when something else is there, install.directory when the file
// could not be written, install.no_data_plane, or the error of the discovery. Asks the control
// plane only when the data plane's URL is not given.
base::Result<ConfigInstallPlan> PlanConfigInstall(const ConfigInstallRequest& request,
                                                  const OpenPlane& open_plane);

// Exchanges the token at the data plane and writes the identity, mode 0600. Safe to try again with
// the same token until the daemon's first heartbeat.
base::Result<net::ComputeIdentity> ApplyConfigInstall(const ConfigInstallPlan& plan,
                                                      const std::string& install_token,
                                                      const OpenPlane& open_plane);

// Reads the file back and asks the control plane for an access token with what it holds. Fails with
// the error of either.
base::Status VerifyConfigInstall(const std::string& config_path, const OpenPlane& open_plane);

}  // namespace expanse::install
