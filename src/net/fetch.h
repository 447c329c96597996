// One small document over HTTP GET, on libcurl: proxies and NO_PROXY from the environment,
// certificates verified, size and time bounded, no redirects. Blocks the calling thread.
// Thread-safe.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace expanse::net {

struct FetchOptions {
  std::chrono::milliseconds timeout{5'000};
  std::size_t max_bytes = 256U << 10;
  std::string ca_file;  // empty: SSL_CERT_FILE, else the system's
};

// The body of a 200 answer. Fails with fetch.unreachable, fetch.timeout, fetch.too_large or
// fetch.status; messages name the URL.
base::Result<std::string> FetchText(const std::string& url, const FetchOptions& options = {});

}  // namespace expanse::net
