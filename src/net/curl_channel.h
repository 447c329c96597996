// One HTTP exchange at a time on libcurl, with the connection kept for the next. Internal to net/.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"

namespace expanse::net {

struct CurlSettings {
  std::string ca_file;  // empty: the system's
  std::string user_agent;
  std::string http_proxy;  // for http:// URLs only; curl reads the other variables itself
  std::chrono::milliseconds connect_timeout;
  std::size_t max_response;
};

struct CurlRequest {
  std::string url;
  bool get = false;
  // The server must not see the request twice: curl is kept from sending it again by itself when a
  // kept connection breaks before an answer.
  bool once = false;
  Headers headers;
  std::string_view body;  // alive during Perform
  std::chrono::milliseconds timeout;
  std::stop_token stop;
};

struct CurlResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

struct CurlFailure {
  base::Error error;
  bool never_sent = false;  // no connection was made: trying again cannot do anything twice
};

// Not thread-safe; one thread at a time.
class CurlChannel {
 public:
  // Fails with client.setup when libcurl has no handle left.
  static base::Result<std::unique_ptr<CurlChannel>> Create(const CurlSettings& settings);
  ~CurlChannel();

  // Blocks until the response is whole, the timeout passed or `stop` was requested. Any HTTP status
  // is a response. Fails with client.unreachable, client.timeout, client.tls, client.canceled,
  // client.response_too_large or client.protocol.
  std::expected<CurlResponse, CurlFailure> Perform(const CurlRequest& request);

 private:
  CurlChannel(CURLM* multi, CURL* easy, const CurlSettings& settings);
  void Prepare(const CurlRequest& request, curl_slist* headers);
  // Drives the transfer; CURLE_ABORTED_BY_CALLBACK when stopped.
  CURLcode Drive(const std::stop_token& stop);
  CurlFailure Explain(CURLcode code, const CurlRequest& request) const;
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t OnSend(char* buffer, std::size_t size, std::size_t count, void* left);
  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* self);

  const CurlSettings settings_;
  CURLM* multi_;  // owns the connections
  CURL* easy_;
  char error_text_[CURL_ERROR_SIZE] = {};
  CurlResponse response_;
  bool too_large_ = false;
  std::string_view unsent_;  // of the body, when curl reads it piece by piece
};

}  // namespace expanse::net
