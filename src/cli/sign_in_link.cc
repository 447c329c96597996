#include "cli/sign_in_link.h"

#include "base/text.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kParameter = "token=";
constexpr std::size_t kMostToken = 512;

// The value of `token=` among "a=1&token=x".
std::string_view TokenOf(std::string_view parameters) {
  for (std::string_view pair : base::Split(parameters, '&')) {
    if (pair.starts_with(kParameter)) return pair.substr(kParameter.size());
  }
  return {};
}

bool IsToken(std::string_view token) {
  if (token.empty() || token.size() > kMostToken) return false;
  return token.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
         std::string_view::npos;
}

}  // namespace

std::expected<SignInLink, Failure> ParseSignInLink(std::string_view text) {
  text = base::Trim(text);
  const auto malformed = [] {
    return FailUsage("login: that is not a sign-in link",
                     "pass the link as the server printed it, in quotes");
  };
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) {
    if (!IsToken(text)) return malformed();
    return SignInLink{.control_plane_url = {}, .token = std::string(text)};
  }
  const std::string_view protocol = text.substr(0, scheme);
  if (protocol != "http" && protocol != "https") return malformed();
  const std::size_t mark = text.find_first_of("?#");
  std::string_view address = text.substr(0, mark);
  std::string_view token;
  if (mark != std::string_view::npos) {
    // "?next=/#token=x": the fragment wins, since it never reaches a server's log.
    const std::string_view rest = text.substr(mark + 1);
    const std::size_t fragment = rest.find('#');
    const bool has_query = text[mark] == '?';
    std::string_view page_fragment;
    if (!has_query) page_fragment = rest;
    if (has_query && fragment != std::string_view::npos) page_fragment = rest.substr(fragment + 1);
    token =
        page_fragment.find('=') == std::string_view::npos ? page_fragment : TokenOf(page_fragment);
    if (token.empty() && has_query) token = TokenOf(rest.substr(0, fragment));
  }
  // The page is the last part of the path; a prefix before it belongs to the control plane.
  const std::size_t page = address.rfind('/');
  if (page != std::string_view::npos && page > scheme + 2) address = address.substr(0, page);
  if (!IsToken(token) || address.size() <= scheme + 3) return malformed();
  return SignInLink{.control_plane_url = std::string(address), .token = std::string(token)};
}

}  // namespace expanse::cli
