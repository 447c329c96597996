#include "net/http_connection.h"

#include <fmt/format.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <optional>
#include <utility>

#include "base/crypto.h"
#include "base/text.h"
#include "net/connect_error.h"

namespace expanse::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::size_t kReadAhead = 64U << 10;
constexpr std::size_t kIdleBuffer = 4U << 10;  // all that a connection between requests keeps
constexpr std::size_t kMaxRequestId = 128;
// After a refusal, what the peer still sends is read and dropped for a moment: closing with unread
// bytes would reset the connection, and the peer might never see the answer.
constexpr std::chrono::seconds kLinger{2};
constexpr std::size_t kLingerBytes = 16U << 20;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

bool IsRequestId(std::string_view text) {
  if (text.empty() || text.size() > kMaxRequestId) return false;
  for (char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || base::IsDigit(c) ||
                       c == '-' || c == '_' || c == '.' || c == ':' || c == '/' || c == '+' ||
                       c == '=';
    if (!plain) return false;
  }
  return true;
}

// No way for a handler to smuggle a second header into a response.
bool IsFieldText(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
}

struct Refusal {
  int status;
  base::Error error;
};

// What to answer when reading failed; nothing when the peer left or met a deadline (Beast has
// closed the socket by then).
std::optional<Refusal> RefusalOf(const error_code& error, const ConnectionLimits& limits) {
  using base::Code;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Refusal{431,
                   {Code::kInvalidArgument, "http.header_too_large",
                    fmt::format("the request header is larger than {} bytes", limits.max_header)}};
  }
  if (error == http::error::body_limit) {
    return Refusal{413,
                   {Code::kResourceExhausted, "http.body_too_large",
                    fmt::format("the request body is larger than {} bytes", limits.max_body)}};
  }
  if (error == http::error::partial_message || error == http::error::end_of_stream)
    return std::nullopt;
  if (error.category() == make_error_code(http::error::bad_method).category()) {
    return Refusal{400,
                   {Code::kInvalidArgument, "http.malformed",
                    fmt::format("the request is not valid HTTP/1.1: {}", error.message())}};
  }
  return std::nullopt;
}

template <typename Stream>
class HttpConnection final : public Connection,
                             public std::enable_shared_from_this<HttpConnection<Stream>> {
 public:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;

  template <typename... Args>
  HttpConnection(ConnectionHost& host, std::string peer, Args&&... args)
      : host_(host),
        peer_(std::move(peer)),
        stream_(std::forward<Args>(args)...),
        buffer_(host.limits().max_header + kReadAhead) {}

  ~HttpConnection() override {
    ReleaseBody();
    host_.OnClosed(this);
  }

  void Start() override {
    asio::dispatch(stream_.get_executor(), [self = this->shared_from_this()] {
      if constexpr (kTls) {
        self->Deadline(self->host_.limits().header_timeout);
        self->stream_.async_handshake(asio::ssl::stream_base::server, [self](error_code error) {
          if (!error) self->WaitForRequest(self->host_.limits().header_timeout);
        });
      } else {
        self->WaitForRequest(self->host_.limits().header_timeout);
      }
    });
  }

  void Close(bool abort) override {
    asio::post(stream_.get_executor(), [self = this->shared_from_this(), abort] {
      if (abort || self->idle_) self->Lowest().close();
    });
  }

 private:
  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream_); }
  void Deadline(std::chrono::milliseconds after) { Lowest().expires_after(after); }

  // Waits for the first byte of a request, which alone may take as long as `patience`.
  void WaitForRequest(std::chrono::milliseconds patience) {
    request_ = {};
    request_.peer = peer_;
    if (buffer_.size() > 0) return ReadHeader();  // pipelined
    if (host_.draining()) return Finish();
    if (buffer_.capacity() > kIdleBuffer) buffer_.shrink_to_fit();
    idle_ = true;
    Deadline(patience);
    stream_.async_read_some(buffer_.prepare(kIdleBuffer),
                            [self = this->shared_from_this()](error_code error, std::size_t size) {
                              self->idle_ = false;
                              if (error) return self->Finish();
                              self->buffer_.commit(size);
                              self->ReadHeader();
                            });
  }

  void ReadHeader() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(host_.limits().max_header));
    parser_->body_limit(host_.limits().max_body);
    Deadline(host_.limits().header_timeout);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](error_code error, std::size_t) {
                              self->OnHeader(error);
                            });
  }

  void OnHeader(const error_code& error) {
    request_.received = std::chrono::steady_clock::now();
    TakeHeader();
    if (error) return OnReadError(error);
    if (parser_->is_done()) return OnRequest();
    // A chunked body may become as large as any.
    const auto length = parser_->content_length();
    const std::size_t wanted = length ? static_cast<std::size_t>(*length) : host_.limits().max_body;
    if (!host_.ReserveBody(wanted)) return OnNoRoom();
    reserved_ = wanted;
    Deadline(host_.limits().body_timeout);
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue") &&
        buffer_.size() == 0) {
      return SendContinue();
    }
    ReadBody();
  }

  void SendContinue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = this->shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->Finish();
                        self->ReadBody();
                      });
  }

  void ReadBody() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](error_code error, std::size_t) {
                       if (error) return self->OnReadError(error);
                       self->OnRequest();
                     });
  }

  // Fills request_ from what the parser has; a broken header may leave parts empty.
  void TakeHeader() {
    const auto& message = parser_->get();
    request_.method = View(message.method_string());
    const std::string_view target = View(message.target());
    const auto question = target.find('?');
    request_.path = target.substr(0, question);
    if (question != std::string_view::npos) request_.query = target.substr(question + 1);
    for (const auto& field : message) {
      request_.headers.Add(std::string(View(field.name_string())),
                           std::string(View(field.value())));
    }
    request_.request_id = request_.headers.Get("X-Request-Id");
    if (!IsRequestId(request_.request_id))
      request_.request_id = base::HexEncode(base::RandomBytes(12));
  }

  void OnReadError(const error_code& error) {
    const auto refusal = RefusalOf(error, host_.limits());
    if (!refusal) return Finish();
    keep_alive_ = false;
    linger_ = true;
    Respond(ErrorResponse(refusal->status, refusal->error));
  }

  void OnNoRoom() {
    keep_alive_ = false;
    linger_ = true;
    HttpResponse response =
        ErrorResponse(base::Error{base::Code::kUnavailable, "http.overloaded",
                                  "the server is reading too much already; try again shortly"});
    response.headers.Add("Retry-After", "1");
    Respond(std::move(response));
  }

  void ReleaseBody() { host_.ReleaseBody(std::exchange(reserved_, 0)); }

  void OnRequest() {
    keep_alive_ = parser_->get().keep_alive();
    linger_ = false;
    Lowest().expires_never();  // a handler has a deadline of its own
    host_.Dispatch(TakeRequest(), [self = this->shared_from_this()](HttpResponse response) mutable {
      // The worker gives its reference away, so the connection may be gone before post() returns.
      const asio::any_io_executor executor = self->stream_.get_executor();
      asio::post(executor, [self = std::move(self), response = std::move(response)]() mutable {
        self->Respond(std::move(response));
      });
    });
  }

  // The request for its handler; request_ keeps what the access log needs.
  HttpRequest TakeRequest() {
    HttpRequest whole = std::move(request_);
    whole.body = std::move(parser_->get().body());
    request_ = {};
    request_.method = whole.method;
    request_.path = whole.path;
    request_.peer = whole.peer;
    request_.request_id = whole.request_id;
    request_.received = whole.received;
    return whole;
  }

  void Respond(HttpResponse response) {
    response_ = std::move(response);
    if (host_.draining()) keep_alive_ = false;
    const bool head = request_.method == "HEAD";
    const bool bodiless =
        response_.status == 204 || response_.status == 304 || response_.status < 200;
    message_ = {};
    message_.version(11);
    message_.result(static_cast<unsigned>(response_.status));
    if (response_.status == 499) message_.reason("Client Closed Request");
    for (const auto& [name, value] : response_.headers.fields()) {
      if (IsFieldText(name) && IsFieldText(value)) message_.insert(name, value);
    }
    message_.set("X-Request-Id", request_.request_id);
    message_.keep_alive(keep_alive_);
    if (!bodiless) message_.content_length(response_.body.size());
    sent_bytes_ = bodiless || head ? 0 : response_.body.size();
    if (sent_bytes_ > 0) message_.body() = std::move(response_.body);
    Deadline(host_.limits().body_timeout);
    http::async_write(stream_, message_,
                      [self = this->shared_from_this()](error_code error, std::size_t) {
                        self->OnWritten(error);
                      });
  }

  void OnWritten(const error_code& error) {
    ReleaseBody();
    host_.OnResponse(request_, response_, sent_bytes_, /*sent=*/!error);
    if (error) return;
    parser_.reset();
    response_ = {};
    message_ = {};
    if (keep_alive_) return WaitForRequest(host_.limits().idle_timeout);
    Finish();
  }

  // Ends the connection politely: what was written arrives before the end does.
  void Finish() {
    if (linger_) return ShutDown(/*drop_rest=*/true);
    if constexpr (kTls) {
      if (Lowest().socket().is_open()) {
        Deadline(kLinger);
        stream_.async_shutdown(
            [self = this->shared_from_this()](error_code) { self->Lowest().close(); });
        return;
      }
    }
    ShutDown(/*drop_rest=*/false);
  }

  void ShutDown(bool drop_rest) {
    error_code ignored;
    Lowest().socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (!drop_rest) return Lowest().close();
    buffer_.clear();
    Deadline(kLinger);
    DropInput(kLingerBytes);
  }

  void DropInput(std::size_t left) {
    Lowest().async_read_some(buffer_.prepare(kReadAhead), [self = this->shared_from_this(), left](
                                                              error_code error, std::size_t size) {
      if (error || size >= left) return self->Lowest().close();
      self->DropInput(left - size);
    });
  }

  ConnectionHost& host_;
  const std::string peer_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;
  HttpResponse response_;
  http::response<http::string_body> message_;
  std::size_t sent_bytes_ = 0;
  std::size_t reserved_ = 0;  // of the server's room for bodies
  bool idle_ = false;
  bool keep_alive_ = true;
  bool linger_ = false;
};

}  // namespace

std::shared_ptr<Connection> MakeConnection(tcp::socket socket, asio::ssl::context* tls,
                                           ConnectionHost& host) {
  error_code error;
  socket.set_option(tcp::no_delay(true), error);
  const tcp::endpoint endpoint = socket.remote_endpoint(error);
  std::string peer = error ? std::string("unknown") : FormatEndpoint(endpoint);
  if (tls == nullptr) {
    return std::make_shared<HttpConnection<beast::tcp_stream>>(host, std::move(peer),
                                                               std::move(socket));
  }
  return std::make_shared<HttpConnection<beast::ssl_stream<beast::tcp_stream>>>(
      host, std::move(peer), std::move(socket), *tls);
}

std::string FormatEndpoint(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

}  // namespace expanse::net
