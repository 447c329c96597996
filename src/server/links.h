// Where the planes are, for each other and for clients, as far as settings leave it open.
#pragma once

#include "base/result.h"
#include "server/options.h"

namespace expanse::server {

// Public URLs that are not set become the listeners' own; planes beside control in this process
// reach it there, with a secret for the lifetime of the process. Fails with server.listen (a
// listener on port 0 has no URL beforehand), server.control_url or server.plane_secret (a plane of
// its own was not told).
base::Status FillLinks(ServerOptions& options);

}  // namespace expanse::server
