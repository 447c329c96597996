#include "net/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace expanse::net {
namespace {

using base::Code;
using boost::system::error_code;
namespace ssl = boost::asio::ssl;

constexpr const char* kCiphers =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

std::unexpected<base::Error> BadFile(std::string message) {
  return base::Fail(Code::kFailedPrecondition, "http.tls_files", std::move(message));
}

base::Status CheckKeyMode(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return BadFile(
        fmt::format("the TLS private key {} cannot be read: {}", path, std::strerror(errno)));
  }
  if ((info.st_mode & 077) != 0) {
    return BadFile(
        fmt::format("the TLS private key {} has mode {:04o}: others may read it; run chmod 600 {}",
                    path, info.st_mode & 07777, path));
  }
  return {};
}

// Picks HTTP/1.1 from what the client offers; a client without ALPN is served all the same.
int SelectAlpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
               unsigned int in_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kOurs, sizeof(kOurs) - 1, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

base::Result<std::unique_ptr<ssl::context>> LoadTls(const TlsFiles& files) {
  EXPANSE_RETURN_IF_ERROR(CheckKeyMode(files.private_key));
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  error_code error;
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                           ssl::context::no_tlsv1_1 | ssl::context::no_sslv3 |
                           ssl::context::no_compression | SSL_OP_NO_RENEGOTIATION |
                           SSL_OP_CIPHER_SERVER_PREFERENCE,
                       error);
  SSL_CTX* native = context->native_handle();
  if (SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(native, kCiphers) != 1) {
    return base::Fail(Code::kInternal, "http.tls", "OpenSSL refused the cipher list");
  }
  SSL_CTX_set_alpn_select_cb(native, SelectAlpn, nullptr);
  context->use_certificate_chain_file(files.certificate_chain, error);
  if (error) {
    return BadFile(fmt::format("the TLS certificate {} is not a readable PEM file: {}",
                               files.certificate_chain, error.message()));
  }
  context->use_private_key_file(files.private_key, ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(native) != 1) {
    return BadFile(fmt::format("the TLS private key {} is not a PEM key of the certificate {}",
                               files.private_key, files.certificate_chain));
  }
  return context;
}

}  // namespace expanse::net
