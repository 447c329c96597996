#include "net/net_testing.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <utility>

#include "base/text.h"

namespace expanse::net {
namespace {

using std::chrono::steady_clock;

void AddExtension(X509* certificate, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value);
  EXPANSE_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::string Pem(const std::function<void(BIO*)>& write) {
  const std::unique_ptr<BIO, void (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free_all);
  write(bio.get());
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

// Bytes of the first message in `buffer`, by its Content-Length (none: no body); npos while its
// header is not all there.
std::size_t WholeSize(std::string_view buffer) {
  const auto end = buffer.find("\r\n\r\n");
  if (end == std::string_view::npos) return end;
  const std::string header = base::ToLower(buffer.substr(0, end)) + "\r";
  constexpr std::string_view kLength = "content-length: ";
  const auto at = header.find(kLength);
  if (at == std::string::npos) return end + 4;
  const auto digits = std::string_view(header).substr(at + kLength.size());
  return end + 4 + base::ParseInt<std::size_t>(digits.substr(0, digits.find('\r'))).value_or(0);
}

}  // namespace

RawPeer::RawPeer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPANSE_CHECK(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
                0);
}

void RawPeer::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server closed: the test sees it in what it reads
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool RawPeer::Receive(steady_clock::time_point until) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
  pollfd poll{socket_.get(), POLLIN, 0};
  if (left <= 0 || ::poll(&poll, 1, static_cast<int>(left)) != 1) return false;
  char chunk[16384];
  const auto size = ::recv(socket_.get(), chunk, sizeof(chunk), 0);
  if (size <= 0) {
    closed_ = true;
    return false;
  }
  buffer_.append(chunk, static_cast<std::size_t>(size));
  return true;
}

std::string RawPeer::ReadResponse() {
  const auto until = steady_clock::now() + std::chrono::seconds(5);
  while (true) {
    const std::size_t whole = WholeSize(buffer_);
    if (whole != std::string::npos && buffer_.size() >= whole) {
      std::string response = buffer_.substr(0, whole);
      buffer_.erase(0, whole);
      return response;
    }
    if (!Receive(until)) return std::exchange(buffer_, {});
  }
}

bool RawPeer::ReadToEnd(std::string* out, std::chrono::milliseconds patience) {
  const auto until = steady_clock::now() + patience;
  while (Receive(until)) {
  }
  *out = std::exchange(buffer_, {});
  return closed_;
}

ScriptedServer::ScriptedServer(std::vector<std::string> script)
    : script_(std::move(script)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  EXPANSE_CHECK(::bind(listener_.get(), raw, size) == 0 && ::listen(listener_.get(), 8) == 0);
  EXPANSE_CHECK(::getsockname(listener_.get(), raw, &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] {
    while (true) {
      const base::UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection.valid()) return;  // the destructor shut the listener down
      Serve(connection.get());
    }
  });
}

ScriptedServer::~ScriptedServer() { ::shutdown(listener_.get(), SHUT_RDWR); }

void ScriptedServer::Serve(int connection) {
  for (const std::string& answer : script_) {
    std::string request;
    std::size_t whole = std::string::npos;
    while (request.size() < whole) {
      char chunk[4096];
      const auto got = ::recv(connection, chunk, sizeof(chunk), 0);
      if (got <= 0) return;
      request.append(chunk, static_cast<std::size_t>(got));
      whole = WholeSize(request);
    }
    ++requests_;
    if (answer.empty()) return;
    ::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
  }
}

int StatusOf(std::string_view response) {
  return response.starts_with("HTTP/1.1 ") ? base::ParseInt<int>(response.substr(9, 3)).value_or(0)
                                           : 0;
}

TestCertificate MakeTestCertificate() {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86400);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509_set_pubkey(certificate.get(), key.get());
  AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  EXPANSE_CHECK(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);

  auto directory = base::TempDir::Create("net-test");
  EXPANSE_CHECK(directory.has_value());
  TestCertificate out{std::move(*directory), {}, {}};
  out.certificate = base::JoinPath(out.directory.path(), "server.pem");
  out.key = base::JoinPath(out.directory.path(), "server.key");
  const std::string pem = Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate.get()); });
  const std::string secret = Pem([&](BIO* bio) {
    PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  EXPANSE_CHECK(base::WriteFileAtomically(out.certificate, pem, 0644).has_value());
  EXPANSE_CHECK(base::WriteFileAtomically(out.key, secret, 0600).has_value());
  return out;
}

void FakeAuthenticator::Add(std::string token, Caller caller) {
  std::scoped_lock lock(mutex_);
  callers_.insert_or_assign(std::move(token), std::move(caller));
}

base::Result<Caller> FakeAuthenticator::Authenticate(std::string_view bearer_token) {
  std::scoped_lock lock(mutex_);
  const auto it = callers_.find(bearer_token);
  if (it == callers_.end()) {
    return base::Fail(base::Code::kUnauthenticated, "token.signature",
                      "the access token is not one of ours");
  }
  return it->second;
}

}  // namespace expanse::net
