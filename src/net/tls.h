// TLS settings of the servers from PEM files. Internal to net/ (brings in Asio).
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "base/result.h"
#include "net/http_server.h"

namespace expanse::net {

// TLS 1.2 and 1.3 with forward-secret AEAD ciphers only. Fails with http.tls_files when a file
// cannot be read, is not PEM, the key does not belong to the certificate, or others may read the
// key.
base::Result<std::unique_ptr<boost::asio::ssl::context>> LoadTls(const TlsFiles& files);

}  // namespace expanse::net
