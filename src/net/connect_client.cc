#include "net/connect_client.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/text.h"
#include "net/connect_error.h"
#include "net/curl_channel.h"
#include "net/wire_body.h"

namespace expanse::net {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Idempotency = google::protobuf::MethodOptions;

constexpr std::size_t kMaxGetUrl = 4096;
constexpr std::string_view kTrailerPrefix = "trailer-";
constexpr std::chrono::seconds kMaxRetryAfter{3600};

std::string Variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

// curl reads http_proxy in lower case only (the upper-case name is a CGI trap for servers); we are
// no CGI program, and people set either. NO_PROXY and the HTTPS variables curl reads in both cases
// itself.
std::string HttpProxyVariable(std::string_view url) {
  if (!url.starts_with("http://") || !Variable("http_proxy").empty()) return {};
  return Variable("HTTP_PROXY");
}

base::Result<std::string> CheckUrl(std::string url) {
  struct UrlDelete {
    void operator()(CURLU* handle) const { curl_url_cleanup(handle); }
  };
  const auto bad = [&](std::string_view why) {
    return base::Fail(
        Code::kInvalidArgument, "client.url",
        fmt::format("\"{}\" is not a server URL: {}", base::EscapeForDisplay(url), why));
  };
  const std::unique_ptr<CURLU, UrlDelete> handle(curl_url());
  if (!handle || curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return bad("expected something like https://expanse.example.org");
  }
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    std::string value;
    if (curl_url_get(handle.get(), which, &text, 0) == CURLUE_OK && text != nullptr) value = text;
    curl_free(text);
    return value;
  };
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return bad("it must begin with https:// or http://");
  if (part(CURLUPART_HOST).empty()) return bad("it names no host");
  if (!part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty())
    return bad("it must not hold credentials");
  if (!part(CURLUPART_QUERY).empty() || !part(CURLUPART_FRAGMENT).empty())
    return bad("it must end with the path");
  while (url.ends_with('/')) url.pop_back();
  return url;
}

// What a call needs besides its options, worked out once for all tries.
struct PreparedCall {
  CurlRequest http;
  std::string body;
  bool retriable = false;
};

struct Attempt {
  base::Status status;
  bool again = false;            // another try may help and can do no harm
  milliseconds server_wants{0};  // Retry-After
};

std::unexpected<base::Error> BadResponse(Code code, std::string message) {
  return base::Fail(code, "client.protocol", std::move(message));
}

void FillMetadata(const Headers& headers, CallMetadata* out) {
  if (out == nullptr) return;
  *out = {};
  for (const auto& [name, value] : headers.fields()) {
    if (base::ToLower(name).starts_with(kTrailerPrefix)) {
      out->trailers.Add(name.substr(kTrailerPrefix.size()), value);
    } else {
      out->headers.Add(name, value);
    }
  }
}

class Client final : public ConnectClient {
 public:
  Client(ConnectClientOptions options, CurlSettings curl)
      : options_(std::move(options)), curl_(std::move(curl)) {}

  base::Status CallErased(std::string_view method, const google::protobuf::Message& request,
                          google::protobuf::Message* response, const CallOptions& call) override {
    const milliseconds timeout = call.timeout.count() > 0 ? call.timeout : options_.timeout;
    const auto deadline = steady_clock::now() + timeout;
    EXPANSE_ASSIGN_OR_RETURN(PreparedCall prepared, Prepare(method, request, call));
    base::Backoff backoff(options_.backoff, Seed());
    for (int attempt = 1;; ++attempt) {
      Attempt result = Try(prepared, deadline, response, call);
      if (result.status || !result.again || attempt >= options_.max_attempts) return result.status;
      const milliseconds wait = std::max(backoff.Next(), result.server_wants);
      // Waiting past the deadline would only hide what went wrong.
      if (steady_clock::now() + wait >= deadline) return result.status;
      if (!clock_.WaitFor(call.stop, wait)) {
        return base::Fail(Code::kCancelled, "client.canceled", "the call was canceled");
      }
    }
  }

 private:
  static std::uint64_t Seed() {
    std::uint64_t seed = 0;
    const std::string bytes = base::RandomBytes(sizeof(seed));
    for (char c : bytes) seed = (seed << 8) | static_cast<unsigned char>(c);
    return seed;
  }

  base::Result<PreparedCall> Prepare(std::string_view method,
                                     const google::protobuf::Message& request,
                                     const CallOptions& call) const {
    const auto dot = method.rfind('.');
    if (dot == std::string_view::npos) {
      return base::Fail(Code::kInvalidArgument, "client.method",
                        fmt::format("{} is not a method's full name", method));
    }
    const auto* descriptor =
        request.GetDescriptor()->file()->pool()->FindMethodByName(std::string(method));
    const auto level = descriptor != nullptr ? descriptor->options().idempotency_level()
                                             : Idempotency::IDEMPOTENCY_UNKNOWN;
    PreparedCall prepared;
    prepared.retriable = level != Idempotency::IDEMPOTENCY_UNKNOWN;
    prepared.http.once = !prepared.retriable;
    prepared.http.stop = call.stop;
    prepared.http.url =
        fmt::format("{}/{}/{}", options_.base_url, method.substr(0, dot), method.substr(dot + 1));
    EXPANSE_ASSIGN_OR_RETURN(prepared.body, SerializeMessage(options_.format, request));
    Compression compression = options_.compression;
    if (prepared.body.size() < options_.compress_min) compression = Compression::kIdentity;
    if (compression != Compression::kIdentity) prepared.body = Compress(compression, prepared.body);
    Headers& headers = prepared.http.headers;
    if (!options_.get || level != Idempotency::NO_SIDE_EFFECTS || !UseGet(prepared, compression)) {
      headers.Add("Content-Type", fmt::format("application/{}", FormatName(options_.format)));
      headers.Add("Connect-Protocol-Version", "1");
      if (compression != Compression::kIdentity) {
        headers.Add("Content-Encoding", std::string(CompressionName(compression)));
      }
    }
    headers.Add("Accept-Encoding", "zstd, gzip");
    if (!call.bearer.empty()) headers.Add("Authorization", "Bearer " + call.bearer);
    for (const auto& [name, value] : call.headers.fields()) headers.Add(name, value);
    for (const auto& [name, value] : headers.fields()) {
      if ((name + value).find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
        return base::Fail(Code::kInvalidArgument, "client.header",
                          fmt::format("the header {} holds a line break", name));
      }
    }
    return prepared;
  }

  // Moves the message into the URL, in the protocol's order of parameters; false if that would make
  // it too long.
  bool UseGet(PreparedCall& prepared, Compression compression) const {
    const bool text = options_.format == WireFormat::kJson && compression == Compression::kIdentity;
    std::string query = "?connect=v1";
    if (!text) query += "&base64=1";
    if (compression != Compression::kIdentity)
      query += fmt::format("&compression={}", CompressionName(compression));
    query +=
        fmt::format("&encoding={}&message={}", FormatName(options_.format),
                    text ? PercentEncode(prepared.body) : base::Base64UrlEncode(prepared.body));
    if (prepared.http.url.size() + query.size() > kMaxGetUrl) return false;
    prepared.http.url += query;
    prepared.http.get = true;
    prepared.body.clear();
    return true;
  }

  Attempt Try(PreparedCall& prepared, steady_clock::time_point deadline,
              google::protobuf::Message* response, const CallOptions& call) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) {
      return {base::Fail(Code::kDeadlineExceeded, "client.timeout",
                         "the call's time was over before it was sent")};
    }
    CurlRequest http = prepared.http;
    http.body = prepared.body;
    http.timeout = left;
    if (options_.announce_timeout)
      http.headers.Add("Connect-Timeout-Ms", std::to_string(left.count()));
    auto channel = Acquire();
    if (!channel) return {std::unexpected(std::move(channel).error())};
    auto answer = (*channel)->Perform(http);
    Release(std::move(*channel));
    if (!answer) return OnFailure(prepared, std::move(answer).error());
    FillMetadata(answer->headers, call.response);
    if (answer->status != 200) return OnErrorStatus(prepared, *answer, call);
    return {ReadResponse(*answer, response)};
  }

  static Attempt OnFailure(const PreparedCall& prepared, CurlFailure failure) {
    const bool passing = failure.error.reason == "client.unreachable" ||
                         (failure.error.reason == "client.timeout" && failure.never_sent);
    Attempt attempt{std::unexpected(std::move(failure.error))};
    attempt.again = prepared.retriable && passing;
    return attempt;
  }

  static Attempt OnErrorStatus(const PreparedCall& prepared, const CurlResponse& answer,
                               const CallOptions& call) {
    Attempt attempt;
    const auto encoding = CompressionFromName(answer.headers.Get("Content-Encoding"));
    base::Result<std::string> body =
        encoding ? Decompress(*encoding, answer.body, kMaxErrorBody) : std::string();
    DecodedError decoded =
        DecodeError(answer.status, answer.headers.Get("Content-Type"), body.value_or(""));
    attempt.again = prepared.retriable && decoded.error.code == Code::kUnavailable;
    if (const auto seconds = base::ParseUnsignedDigits(answer.headers.Get("Retry-After"))) {
      attempt.server_wants = std::min<std::chrono::seconds>(
          std::chrono::seconds(static_cast<std::int64_t>(*seconds)), kMaxRetryAfter);
    }
    if (call.response != nullptr) call.response->error_details = std::move(decoded.details);
    attempt.status = std::unexpected(std::move(decoded.error));
    return attempt;
  }

  base::Status ReadResponse(const CurlResponse& answer, google::protobuf::Message* response) const {
    const std::string_view type = answer.headers.Get("Content-Type");
    const auto format = FormatOfContentType(type);
    if (format != options_.format) {
      return BadResponse(
          format ? Code::kInternal : Code::kUnknown,
          fmt::format("the server answered with {} instead of application/{}: is this the right "
                      "address, or does a proxy answer in its place?",
                      type.empty() ? "no content type" : base::EscapeForDisplay(type),
                      FormatName(options_.format)));
    }
    const auto compression = CompressionFromName(answer.headers.Get("Content-Encoding"));
    if (!compression)
      return BadResponse(Code::kInternal, "the response has an encoding that was not asked for");
    std::string_view body = answer.body;
    std::string plain;
    if (*compression != Compression::kIdentity && !body.empty()) {
      auto result = Decompress(*compression, body, options_.max_response);
      if (!result && result.error().code == Code::kResourceExhausted) {
        return base::Fail(
            Code::kResourceExhausted, "client.response_too_large",
            fmt::format("the response is larger than {} bytes", options_.max_response));
      }
      if (!result) return BadResponse(Code::kInternal, "the response's compression is broken");
      plain = std::move(*result);
      body = plain;
    }
    if (auto status = ParseMessage(options_.format, body, response); !status) {
      return BadResponse(Code::kInternal,
                         fmt::format("the response cannot be read: {}", status.error().message));
    }
    return {};
  }

  base::Result<std::unique_ptr<CurlChannel>> Acquire() {
    {
      std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        auto channel = std::move(idle_.back());
        idle_.pop_back();
        return channel;
      }
    }
    return CurlChannel::Create(curl_);
  }

  void Release(std::unique_ptr<CurlChannel> channel) {
    std::scoped_lock lock(mutex_);
    if (idle_.size() < options_.max_idle_connections) idle_.push_back(std::move(channel));
  }

  static constexpr std::size_t kMaxErrorBody = 1U << 20;
  const ConnectClientOptions options_;
  const CurlSettings curl_;
  base::SystemClock clock_;  // for pauses between tries; curl keeps real time as well
  std::mutex mutex_;         // guards idle_
  std::vector<std::unique_ptr<CurlChannel>> idle_;
};

}  // namespace

base::Result<std::unique_ptr<ConnectClient>> ConnectClient::Create(ConnectClientOptions options) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) {
    return base::Fail(Code::kInternal, "client.setup", curl_easy_strerror(initialised));
  }
  EXPANSE_ASSIGN_OR_RETURN(options.base_url, CheckUrl(std::move(options.base_url)));
  CurlSettings curl;
  curl.ca_file = options.ca_file.empty() ? Variable("SSL_CERT_FILE") : options.ca_file;
  curl.user_agent = options.user_agent;
  curl.http_proxy = HttpProxyVariable(options.base_url);
  curl.connect_timeout = options.connect_timeout;
  curl.max_response = options.max_response;
  return std::make_unique<Client>(std::move(options), std::move(curl));
}

}  // namespace expanse::net
