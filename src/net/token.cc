#include "net/token.h"

#include <jwt.h>
#include <openssl/err.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/crypto.h"

namespace expanse::net {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using nlohmann::json;

constexpr std::size_t kMaxToken = 8U << 10;
constexpr std::size_t kMaxPermissions = 256;
constexpr std::size_t kSignatureBytes = 64;  // R and S of P-256, RFC 7518 section 3.4

struct FreeJwt {
  void operator()(jwt_t* jwt) const { jwt_free(jwt); }
};
struct FreeText {
  void operator()(char* text) const { std::free(text); }
};
using Jwt = std::unique_ptr<jwt_t, FreeJwt>;

std::unexpected<base::Error> Refuse(std::string reason, std::string message) {
  return Fail(Code::kUnauthenticated, std::move(reason), std::move(message));
}
std::unexpected<base::Error> Malformed() {
  return Refuse("token.malformed", "the access token is malformed");
}

std::string_view KindName(CallerKind kind) {
  switch (kind) {
    case CallerKind::kAnonymous:
      return "anonymous";
    case CallerKind::kUser:
      return "user";
    case CallerKind::kCompute:
      return "compute";
    case CallerKind::kPlane:
      return "plane";
  }
  return "";
}

std::optional<CallerKind> ParseKind(std::string_view name) {
  for (CallerKind kind : {CallerKind::kUser, CallerKind::kCompute, CallerKind::kPlane}) {
    if (name == KindName(kind)) return kind;
  }
  return std::nullopt;
}

std::int64_t UnixSeconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

// Header, payload and signature, decoded. Nothing unless the text is exactly three canonical
// base64url pieces: every accepted token has one spelling only.
std::optional<std::array<std::string, 3>> SplitToken(std::string_view token) {
  std::array<std::string, 3> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto dot = token.find('.');
    if ((dot == std::string_view::npos) != (i == 2)) return std::nullopt;
    auto decoded = base::Base64UrlDecode(token.substr(0, dot));
    if (!decoded || decoded->empty()) return std::nullopt;
    parts[i] = std::move(*decoded);
    if (i < 2) token.remove_prefix(dot + 1);
  }
  return parts;
}

std::optional<std::string> TextOf(const json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_string()) return std::nullopt;
  return at->get<std::string>();
}

std::optional<std::int64_t> SecondsOf(const json& object, const char* name) {
  constexpr std::int64_t kLatest = 1LL << 40;  // keeps the conversion to microseconds in range
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_integer()) return std::nullopt;
  const auto value = at->get<std::int64_t>();
  if (value < 0 || value > kLatest) return std::nullopt;
  return value;
}

// The key id of a header that pins the algorithm; nothing for any other header. `crit` names
// extensions that must be understood (RFC 7515 section 4.1.11), and we know none.
std::optional<std::string> KeyIdOf(std::string_view header) {
  const json object = json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || TextOf(object, "alg") != "ES256" || object.contains("crit")) {
    return std::nullopt;
  }
  return TextOf(object, "kid");
}

// True if the library finds the signature good. It reads a C string; the caller has made sure that
// the token holds base64url and dots only.
bool SignatureHolds(std::string_view token, const std::string& public_pem) {
  jwt_t* raw = nullptr;
  const int failed = jwt_decode(&raw, std::string(token).c_str(),
                                reinterpret_cast<const unsigned char*>(public_pem.data()),
                                static_cast<int>(public_pem.size()));
  const Jwt jwt(failed == 0 ? raw : nullptr);
  ERR_clear_error();
  return jwt && jwt_get_alg(jwt.get()) == JWT_ALG_ES256;
}

std::optional<Caller> CallerOf(const json& claims) {
  const auto kind = ParseKind(TextOf(claims, "kind").value_or(""));
  auto subject = TextOf(claims, "sub");
  const auto expires = SecondsOf(claims, "exp");
  if (!kind || !subject || subject->empty() || !expires) return std::nullopt;
  Caller caller;
  caller.kind = *kind;
  caller.subject = std::move(*subject);
  caller.organisation_id = TextOf(claims, "org").value_or("");
  caller.session_id = TextOf(claims, "sid").value_or("");
  caller.expires_at = base::WallTime(std::chrono::seconds(*expires));
  // What a revocation could not name must not be let in.
  if (*kind != CallerKind::kPlane &&
      (caller.organisation_id.empty() || caller.session_id.empty())) {
    return std::nullopt;
  }
  if (const auto permissions = claims.find("perms"); permissions != claims.end()) {
    if (!permissions->is_array() || permissions->size() > kMaxPermissions) return std::nullopt;
    for (const json& permission : *permissions) {
      if (!permission.is_string()) return std::nullopt;
      caller.permissions.push_back(permission.get<std::string>());
    }
  }
  return caller;
}

}  // namespace

Result<SignedToken> TokenSigner::Sign(const Caller& caller, std::chrono::seconds life) const {
  EXPANSE_CHECK(caller.kind != CallerKind::kAnonymous);
  const base::WallTime now = clock_.Now();
  const std::int64_t issued = UnixSeconds(now);
  json claims = {{"iss", policy_.issuer},
                 {"aud", policy_.audience},
                 {"sub", caller.subject},
                 {"iat", issued},
                 {"nbf", issued},
                 {"exp", issued + life.count()},
                 {"jti", base::NewUuid(now)},
                 {"kind", KindName(caller.kind)},
                 {"sid", caller.session_id}};
  if (!caller.organisation_id.empty()) claims["org"] = caller.organisation_id;
  if (!caller.permissions.empty()) claims["perms"] = caller.permissions;
  const std::string text = claims.dump(-1, ' ', true, json::error_handler_t::replace);

  const auto key = keys_.Current();
  jwt_t* raw = nullptr;
  if (jwt_new(&raw) != 0) return Fail(Code::kInternal, "token.sign", "cannot make a token");
  const Jwt jwt(raw);
  if (jwt_add_header(jwt.get(), "kid", key->kid.c_str()) != 0 ||
      jwt_add_grants_json(jwt.get(), text.c_str()) != 0 ||
      jwt_set_alg(jwt.get(), JWT_ALG_ES256,
                  reinterpret_cast<const unsigned char*>(key->private_pem.data()),
                  static_cast<int>(key->private_pem.size())) != 0) {
    return Fail(Code::kInternal, "token.sign", "cannot fill a token");
  }
  const std::unique_ptr<char, FreeText> encoded(jwt_encode_str(jwt.get()));
  if (!encoded) {
    ERR_clear_error();
    return Fail(Code::kInternal, "token.sign", "cannot sign a token");
  }
  return SignedToken{encoded.get(), base::WallTime(std::chrono::seconds(issued) + life)};
}

Result<Caller> TokenVerifier::Verify(std::string_view token, const PublicKeySet& keys,
                                     base::WallTime now) const {
  if (token.size() > kMaxToken) return Malformed();
  const auto parts = SplitToken(token);
  if (!parts || (*parts)[2].size() != kSignatureBytes) return Malformed();
  const auto kid = KeyIdOf((*parts)[0]);
  if (!kid) return Malformed();
  const std::string* public_pem = keys.Find(*kid);
  if (public_pem == nullptr) {
    return Refuse("token.unknown_key",
                  "the access token was signed with a key that is not known here");
  }
  if (!SignatureHolds(token, *public_pem)) {
    return Refuse("token.signature", "the signature of the access token does not hold");
  }
  const json claims = json::parse((*parts)[1], nullptr, /*allow_exceptions=*/false);
  if (!claims.is_object()) return Malformed();
  if (TextOf(claims, "iss") != policy_.issuer || TextOf(claims, "aud") != policy_.audience) {
    return Refuse("token.foreign", "the access token was made for something else");
  }
  auto caller = CallerOf(claims);
  if (!caller) return Malformed();
  const auto not_before = SecondsOf(claims, "nbf");
  if (claims.contains("nbf") && !not_before) return Malformed();
  if (not_before && base::WallTime(std::chrono::seconds(*not_before)) > now + policy_.clock_skew) {
    return Refuse("token.not_yet_valid", "the access token is not valid yet; check the clocks");
  }
  if (caller->expires_at + policy_.clock_skew <= now) {
    return Refuse("token.expired", "the access token has expired; get a new one");
  }
  return std::move(*caller);
}

}  // namespace expanse::net
