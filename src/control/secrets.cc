#include "control/secrets.h"

#include "base/crypto.h"

namespace expanse::control {
namespace {

constexpr std::string_view kRefreshPrefix = "exp_session_";
constexpr std::size_t kSelectorBytes = 16;
constexpr std::size_t kSelectorChars = 22;
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kSecretChars = 43;

}  // namespace

RefreshToken RefreshToken::New() {
  return {base::Base64UrlEncode(base::RandomBytes(kSelectorBytes)),
          base::Base64UrlEncode(base::RandomBytes(kSecretBytes))};
}

RefreshToken RefreshToken::Next() const {
  return {selector, base::Base64UrlEncode(base::RandomBytes(kSecretBytes))};
}

std::optional<RefreshToken> RefreshToken::Parse(std::string_view text) {
  if (text.size() != kRefreshPrefix.size() + kSelectorChars + kSecretChars ||
      !text.starts_with(kRefreshPrefix)) {
    return std::nullopt;
  }
  text.remove_prefix(kRefreshPrefix.size());
  RefreshToken token{std::string(text.substr(0, kSelectorChars)),
                     std::string(text.substr(kSelectorChars))};
  if (!base::Base64UrlDecode(token.selector) || !base::Base64UrlDecode(token.secret))
    return std::nullopt;
  return token;
}

std::string RefreshToken::Text() const { return std::string(kRefreshPrefix) + selector + secret; }

store::RefreshHashes RefreshToken::Hashes() const {
  return {base::Sha256Hex(selector), base::Sha256Hex(secret)};
}

}  // namespace expanse::control
