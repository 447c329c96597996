// Unary Connect calls on libcurl: proxies and NO_PROXY from the environment, SSL_CERT_FILE,
// keep-alive, deadlines, retries with jitter for methods that are declared idempotent.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/retry.h"
#include "base/time.h"
#include "net/caller.h"
#include "net/http.h"

namespace google::protobuf {
class Message;
}

namespace expanse::net {

enum class WireFormat : std::uint8_t { kProto, kJson };
enum class Compression : std::uint8_t { kIdentity, kGzip, kZstd };

struct ConnectClientOptions {
  std::string base_url{};  // "https://expanse.example.org"; a path prefix is kept
  WireFormat format = WireFormat::kProto;
  Compression compression = Compression::kIdentity;  // of requests
  std::size_t compress_min = 1024;                   // smaller requests are sent as they are
  std::chrono::milliseconds timeout{10'000};
  bool announce_timeout = true;  // tell the server the deadline, so that it gives up as well
  std::chrono::milliseconds connect_timeout{5'000};
  int max_attempts = 3;  // of idempotent calls; others are tried once
  std::size_t max_response = 64U << 20;
  std::string user_agent{};
  std::string ca_file{};          // empty: SSL_CERT_FILE, else the system's
  bool get = false;               // side-effect-free calls by GET as long as the URL stays short
  base::BackoffPolicy backoff{};  // between tries
  std::size_t max_idle_connections = 8;
};

// Every member has an initializer, so that {.bearer = token} warns of nothing.
struct CallOptions {
  std::string bearer{};                  // access token; empty: none
  std::chrono::milliseconds timeout{0};  // 0: the client's
  Headers headers{};                     // to send besides the protocol's own
  std::stop_token stop{};                // ends the call early: canceled, client.canceled
  CallMetadata* response = nullptr;      // filled for answers and errors alike, if given
};

// Thread-safe; connections are pooled.
class ConnectClient {
 public:
  // Fails with client.url for anything but http:// or https:// with a host.
  static base::Result<std::unique_ptr<ConnectClient>> Create(ConnectClientOptions options);
  virtual ~ConnectClient() = default;

  // `method` is the full name, "expanse.control.v1.AuthService.Login". Errors carry the server's
  // code, message and reason; client.unreachable, client.timeout, client.tls, client.protocol are
  // our own.
  template <typename Response>
  base::Result<Response> Call(std::string_view method, const google::protobuf::Message& request,
                              const CallOptions& options = {}) {
    Response response;
    if (auto status = CallErased(method, request, &response, options); !status) {
      return std::unexpected(std::move(status).error());
    }
    return response;
  }

  virtual base::Status CallErased(std::string_view method, const google::protobuf::Message& request,
                                  google::protobuf::Message* response,
                                  const CallOptions& options) = 0;
};

}  // namespace expanse::net
