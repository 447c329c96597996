// The secrets that control hands out, by prefix, and the two halves of a refresh token.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/records/identity_store.h"

namespace expanse::control {

inline constexpr std::string_view kUserKeyPrefix = "exp_user_";
inline constexpr std::string_view kSignInLinkPrefix = "exp_link_";
inline constexpr std::string_view kInstallTokenPrefix = "exp_install_";
inline constexpr std::string_view kComputeCredentialPrefix = "exp_compute_";

// "exp_session_", 22 characters of selector, 43 of secret. The selector (128 random bits) is the
// same in all refresh tokens of a session, so that an old one is recognised as such however old it
// is; the secret (256 bits) changes with each.
struct RefreshToken {
  static RefreshToken New();
  // A token of the same session with a new secret.
  RefreshToken Next() const;
  static std::optional<RefreshToken> Parse(std::string_view text);

  std::string Text() const;
  store::RefreshHashes Hashes() const;

  std::string selector;
  std::string secret;
};

}  // namespace expanse::control
