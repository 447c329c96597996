#include "server/listen.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/text.h"

namespace expanse::server {
namespace {

bool IsIpv6(std::string_view address) { return address.find(':') != std::string_view::npos; }

bool IsIpAddress(const std::string& address) {
  in6_addr buffer{};
  return ::inet_pton(IsIpv6(address) ? AF_INET6 : AF_INET, address.c_str(), &buffer) == 1;
}

}  // namespace

base::Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto fail = [&] {
    return base::Fail(
        base::Code::kInvalidArgument, "server.listen",
        fmt::format("\"{}\" is not a listen address; write 127.0.0.1:8440 or [::1]:8440",
                    base::EscapeForDisplay(text)));
  };
  if (colon == std::string_view::npos) return fail();
  std::string address(text.substr(0, colon));
  if (address.size() >= 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
    if (!IsIpv6(address)) return fail();
  } else if (IsIpv6(address)) {
    return fail();
  }
  const auto port = base::ParseInt<std::uint16_t>(text.substr(colon + 1));
  if (!port || !IsIpAddress(address)) return fail();
  return ListenAddress{std::move(address), *port};
}

bool IsLoopback(const ListenAddress& listen) {
  return listen.address == "::1" || listen.address.starts_with("127.");
}

std::string LocalUrl(const ListenAddress& listen, bool tls) {
  std::string host = listen.address;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (IsIpv6(host)) host = "[" + host + "]";
  return fmt::format("{}://{}:{}", tls ? "https" : "http", host, listen.port);
}

}  // namespace expanse::server
