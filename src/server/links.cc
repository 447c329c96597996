#include "server/links.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/crypto.h"
#include "base/text.h"

namespace expanse::server {
namespace {

base::Status FillUrl(bool runs, const ListenAddress& listen, bool tls, std::string_view setting,
                     std::string& url) {
  if (!url.empty() || !runs) return {};
  if (listen.port == 0) {
    return base::Fail(base::Code::kInvalidArgument, "server.listen",
                      fmt::format("a listener on port 0 needs {} to be set", setting));
  }
  url = LocalUrl(listen, tls);
  return {};
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

// How `plane`, if it runs here, reaches control.
base::Status FillLink(ServerOptions& options, bool runs, const std::string& plane,
                      PlaneLink& link) {
  if (!runs) return {};
  const bool tls = options.http.tls.has_value();
  if (link.control_url.empty() && options.run_control) {
    // In one process the short way is taken; with TLS the certificate's name matters.
    link.control_url = tls ? options.control.public_url : LocalUrl(options.control_listen, tls);
  }
  if (link.control_url.empty()) {
    return base::Fail(
        base::Code::kInvalidArgument, "server.control_url",
        fmt::format("{0} without control needs {0}.control_url and {0}.plane_secret", plane));
  }
  if (link.plane_secret.empty()) {
    if (!options.run_control) {
      return base::Fail(
          base::Code::kInvalidArgument, "server.plane_secret",
          fmt::format("{} without control needs EXPANSE_{}_PLANE_SECRET", plane, Upper(plane)));
    }
    link.plane_secret = base::NewSecret("exp_plane_");
  }
  if (options.run_control) control::AddPlaneSecret(options.control, plane, link.plane_secret);
  return {};
}

}  // namespace

base::Status FillLinks(ServerOptions& options) {
  const bool tls = options.http.tls.has_value();
  EXPANSE_RETURN_IF_ERROR(FillUrl(options.run_control, options.control_listen, tls,
                                  "control.public_url", options.control.public_url));
  EXPANSE_RETURN_IF_ERROR(FillUrl(options.run_data, options.data_listen, tls,
                                  "control.data_public_url", options.control.data_public_url));
  EXPANSE_RETURN_IF_ERROR(FillUrl(options.run_intelligence, options.intelligence_listen, tls,
                                  "control.intelligence_public_url",
                                  options.control.intelligence_public_url));
  EXPANSE_RETURN_IF_ERROR(FillLink(options, options.run_data, "data", options.data_link));
  return FillLink(options, options.run_intelligence, "intelligence", options.intelligence_link);
}

}  // namespace expanse::server
