#include "net/fetch.h"

#include <curl/curl.h>

#include <cstdlib>
#include <memory>

namespace expanse::net {
namespace {

using base::Code;
using base::Fail;

struct CloseCurl {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

struct Sink {
  std::string body;
  std::size_t limit;
  bool full = false;
};

std::size_t Take(char* data, std::size_t size, std::size_t count, void* user) {
  auto* sink = static_cast<Sink*>(user);
  if (sink->body.size() + size * count > sink->limit) {
    sink->full = true;
    return 0;  // curl ends the transfer
  }
  sink->body.append(data, size * count);
  return size * count;
}

}  // namespace

base::Result<std::string> FetchText(const std::string& url, const FetchOptions& options) {
  const std::unique_ptr<CURL, CloseCurl> curl(curl_easy_init());
  if (!curl) return Fail(Code::kInternal, "fetch.curl", "cannot start libcurl");
  Sink sink{.body = {}, .limit = options.max_bytes};
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &Take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &sink);
  const char* from_environment = std::getenv("SSL_CERT_FILE");
  if (!options.ca_file.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO, options.ca_file.c_str());
  } else if (from_environment != nullptr && *from_environment != '\0') {
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO, from_environment);
  }

  const CURLcode code = curl_easy_perform(curl.get());
  if (sink.full)
    return Fail(Code::kResourceExhausted, "fetch.too_large", url + ": the answer is too large");
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return Fail(Code::kDeadlineExceeded, "fetch.timeout", url + ": no answer in time");
  }
  if (code != CURLE_OK) {
    return Fail(Code::kUnavailable, "fetch.unreachable", url + ": " + curl_easy_strerror(code));
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) {
    return Fail(Code::kUnavailable, "fetch.status",
                url + ": HTTP status " + std::to_string(status));
  }
  return std::move(sink.body);
}

}  // namespace expanse::net
