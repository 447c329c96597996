// What the data plane asks of the control plane, which is the authority on install tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "evidence/execution.h"
#include "net/connect_client.h"

namespace expanse::data {

struct InstalledCompute {
  std::string compute_id;
  std::string compute_name;
  std::string organisation_id;
  evidence::SourceType type = evidence::SourceType::kUnspecified;
  std::string credential;
};

// Thread-safe.
class ControlClient {
 public:
  virtual ~ControlClient() = default;
  // Burns the token and makes the compute's credential. Errors are the control plane's; blocks for
  // one or two calls.
  virtual base::Result<InstalledCompute> BurnInstallToken(std::string_view token,
                                                          evidence::SourceType type) = 0;
};

// Calls over `client` with an access token of the plane "data", which it gets for `plane_secret`
// and renews in time. The clock outlives it.
std::unique_ptr<ControlClient> CreateControlClient(std::unique_ptr<net::ConnectClient> client,
                                                   std::string plane_secret, base::Clock& clock);

}  // namespace expanse::data
