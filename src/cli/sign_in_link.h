// The one-time link of a server's first start: "https://host/sign-in#exp_link_…".
#pragma once

#include <string>
#include <string_view>

#include "cli/spec.h"

namespace expanse::cli {

struct SignInLink {
  std::string control_plane_url;  // empty when only the token was given
  std::string token;
};

// Accepts the whole link (the token is the fragment, or `token=` in fragment or query) or its
// secret part alone. The text is a secret: it is not in the error.
std::expected<SignInLink, Failure> ParseSignInLink(std::string_view text);

}  // namespace expanse::cli
