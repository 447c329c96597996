#include "net/curl_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace expanse::net {
namespace {

using base::Code;

constexpr int kPollMs = 1000;  // how often curl is asked whether a deadline of its own has passed
// Below the idle timeout of our servers, so that a connection is rarely reused while it is being
// closed.
constexpr long kMaxIdleSeconds = 55;

struct SlistDelete {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::unique_ptr<curl_slist, SlistDelete> ToSlist(const Headers& headers) {
  std::unique_ptr<curl_slist, SlistDelete> list;
  const auto append = [&](const std::string& line) {
    if (curl_slist* grown = curl_slist_append(list.get(), line.c_str())) {
      (void)list.release();
      list.reset(grown);
    }
  };
  for (const auto& [name, value] : headers.fields()) {
    // curl takes "Name;" for an empty value and "Name:" for no header at all.
    append(value.empty() ? name + ";" : name + ": " + value);
  }
  append("Expect:");  // our requests are small; waiting for 100 Continue costs a round trip
  return list;
}

std::string HostOf(const std::string& url) {
  const auto begin = url.find("://");
  const auto from = begin == std::string::npos ? 0 : begin + 3;
  return url.substr(0, url.find_first_of("/?", from));
}

}  // namespace

CurlChannel::CurlChannel(CURLM* multi, CURL* easy, const CurlSettings& settings)
    : settings_(settings), multi_(multi), easy_(easy) {}

CurlChannel::~CurlChannel() {
  curl_easy_cleanup(easy_);
  curl_multi_cleanup(multi_);
}

base::Result<std::unique_ptr<CurlChannel>> CurlChannel::Create(const CurlSettings& settings) {
  CURLM* multi = curl_multi_init();
  CURL* easy = curl_easy_init();
  if (multi == nullptr || easy == nullptr) {
    if (easy != nullptr) curl_easy_cleanup(easy);
    if (multi != nullptr) curl_multi_cleanup(multi);
    return base::Fail(Code::kResourceExhausted, "client.setup", "libcurl could not make a handle");
  }
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 2L);
  return std::unique_ptr<CurlChannel>(new CurlChannel(multi, easy, settings));
}

std::size_t CurlChannel::OnBody(char* data, std::size_t size, std::size_t count, void* self) {
  auto* channel = static_cast<CurlChannel*>(self);
  const std::size_t bytes = size * count;
  if (channel->response_.body.size() + bytes > channel->settings_.max_response) {
    channel->too_large_ = true;
    return 0;  // ends the transfer
  }
  channel->response_.body.append(data, bytes);
  return bytes;
}

std::size_t CurlChannel::OnSend(char* buffer, std::size_t size, std::size_t count, void* self) {
  std::string_view& left = static_cast<CurlChannel*>(self)->unsent_;
  const std::size_t bytes = std::min(size * count, left.size());
  std::copy_n(left.data(), bytes, buffer);
  left.remove_prefix(bytes);
  return bytes;
}

std::size_t CurlChannel::OnHeader(char* data, std::size_t size, std::size_t count, void* self) {
  auto* channel = static_cast<CurlChannel*>(self);
  const std::string_view line = base::Trim({data, size * count});
  if (line.starts_with("HTTP/")) {
    channel->response_.headers = {};  // an interim response came before
  } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    channel->response_.headers.Add(std::string(line.substr(0, colon)),
                                   std::string(base::Trim(line.substr(colon + 1))));
  }
  return size * count;
}

void CurlChannel::Prepare(const CurlRequest& request, curl_slist* headers) {
  curl_easy_reset(easy_);  // keeps connections, sessions and the DNS cache
  error_text_[0] = '\0';
  response_ = {};
  too_large_ = false;
  curl_easy_setopt(easy_, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_FOLLOWLOCATION, 0L);  // a token goes where it was meant to go
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_MAXAGE_CONN, kMaxIdleSeconds);
  curl_easy_setopt(easy_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(settings_.connect_timeout.count()));
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_);
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  if (!settings_.user_agent.empty())
    curl_easy_setopt(easy_, CURLOPT_USERAGENT, settings_.user_agent.c_str());
  if (!settings_.ca_file.empty())
    curl_easy_setopt(easy_, CURLOPT_CAINFO, settings_.ca_file.c_str());
  if (!settings_.http_proxy.empty())
    curl_easy_setopt(easy_, CURLOPT_PROXY, settings_.http_proxy.c_str());
  if (request.get) {
    curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(easy_, CURLOPT_POST, 1L);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    if (request.once && !request.body.empty()) {
      // A body that curl cannot rewind is a body that it cannot send again.
      unsent_ = request.body;
      curl_easy_setopt(easy_, CURLOPT_READFUNCTION, &OnSend);
      curl_easy_setopt(easy_, CURLOPT_READDATA, this);
    } else {
      curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    }
  }
}

std::expected<CurlResponse, CurlFailure> CurlChannel::Perform(const CurlRequest& request) {
  const auto headers = ToSlist(request.headers);
  Prepare(request, headers.get());
  if (const CURLMcode added = curl_multi_add_handle(multi_, easy_); added != CURLM_OK) {
    return std::unexpected(
        CurlFailure{{Code::kInternal, "client.setup", curl_multi_strerror(added)}, true});
  }
  const CURLcode code = Drive(request.stop);
  std::expected<CurlResponse, CurlFailure> result;
  if (code != CURLE_OK) {
    result = std::unexpected(Explain(code, request));
  } else {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    response_.status = static_cast<int>(status);
    result = std::move(response_);
  }
  curl_multi_remove_handle(multi_, easy_);
  return result;
}

CURLcode CurlChannel::Drive(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_); });
  while (true) {
    int running = 0;
    if (stop.stop_requested()) return CURLE_ABORTED_BY_CALLBACK;
    if (curl_multi_perform(multi_, &running) != CURLM_OK) return CURLE_FAILED_INIT;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg == CURLMSG_DONE) return message->data.result;
    }
    // curl shortens the wait to its own next timeout.
    if (curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr) != CURLM_OK) return CURLE_FAILED_INIT;
  }
}

CurlFailure CurlChannel::Explain(CURLcode code, const CurlRequest& request) const {
  const std::string host = HostOf(request.url);
  const std::string why = error_text_[0] != '\0' ? error_text_ : curl_easy_strerror(code);
  curl_off_t connected_us = 0;
  curl_easy_getinfo(easy_, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
  const bool never_sent = connected_us == 0;
  switch (static_cast<int>(code)) {  // curl has a hundred codes; we tell five kinds apart
    case CURLE_ABORTED_BY_CALLBACK:
      return {{Code::kCancelled, "client.canceled", "the call was canceled"}, never_sent};
    case CURLE_OPERATION_TIMEDOUT:
      return {{Code::kDeadlineExceeded, "client.timeout",
               fmt::format("{} did not answer in time: {}", host, why)},
              never_sent};
    case CURLE_WRITE_ERROR:
      if (too_large_) {
        return {{Code::kResourceExhausted, "client.response_too_large",
                 fmt::format("the response is larger than {} bytes", settings_.max_response)},
                false};
      }
      break;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return {{Code::kUnavailable, "client.tls",
               fmt::format("no secure connection to {}: {}. If the server has a certificate of "
                           "your own authority, "
                           "point SSL_CERT_FILE at it",
                           host, why)},
              never_sent};
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return {{Code::kUnknown, "client.protocol",
               fmt::format("{} does not speak HTTP as expected: {}", host, why)},
              never_sent};
    default:
      break;
  }
  return {{Code::kUnavailable, "client.unreachable", fmt::format("cannot reach {}: {}", host, why)},
          never_sent};
}

}  // namespace expanse::net
