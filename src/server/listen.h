// "ADDRESS:PORT" settings of the listeners.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::server {

struct ListenAddress {
  std::string address;  // an IP address, without brackets
  std::uint16_t port = 0;
};

// "127.0.0.1:8440", "[::1]:8440", "0.0.0.0:0". Fails with server.listen.
base::Result<ListenAddress> ParseListenAddress(std::string_view text);
// True for 127.0.0.0/8 and ::1.
bool IsLoopback(const ListenAddress& listen);
// The URL at which this host reaches the listener itself: wildcard addresses become loopback.
std::string LocalUrl(const ListenAddress& listen, bool tls);

}  // namespace expanse::server
