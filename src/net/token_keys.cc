#include "net/token_keys.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/crypto.h"
#include "base/text.h"

namespace expanse::net {
namespace {

using base::Code;
using base::Fail;
using base::Result;

constexpr std::size_t kCoordinateBytes = 32;
constexpr std::size_t kMaxKeys = 64;
constexpr std::size_t kMaxJwksBytes = 64U << 10;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Pkey = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using PkeyContext = std::unique_ptr<EVP_PKEY_CTX, Deleter<EVP_PKEY_CTX_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Bignum = std::unique_ptr<BIGNUM, Deleter<BN_clear_free>>;
using ParamBuilder = std::unique_ptr<OSSL_PARAM_BLD, Deleter<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Deleter<OSSL_PARAM_free>>;

std::unexpected<base::Error> LibraryFailure(std::string_view what) {
  ERR_clear_error();
  return Fail(Code::kInternal, "token_keys.openssl", "OpenSSL failed to " + std::string(what));
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::optional<std::string> Coordinate(const EVP_PKEY* key, const char* name) {
  BIGNUM* raw = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &raw) != 1) return std::nullopt;
  const Bignum number(raw);
  std::string bytes(kCoordinateBytes, '\0');
  const int written = BN_bn2binpad(number.get(), reinterpret_cast<unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  if (written != static_cast<int>(bytes.size())) return std::nullopt;
  return bytes;
}

bool IsP256(const EVP_PKEY* key) {
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) return false;
  char group[32] = {};
  std::size_t length = 0;
  return EVP_PKEY_get_group_name(key, group, sizeof group, &length) == 1 &&
         std::string_view(group, length) == SN_X9_62_prime256v1;
}

// RFC 7638: the required members in lexical order, without white space.
std::string Thumbprint(std::string_view x, std::string_view y) {
  return base::Base64UrlEncode(base::Sha256(R"({"crv":"P-256","kty":"EC","x":")" +
                                            base::Base64UrlEncode(x) + R"(","y":")" +
                                            base::Base64UrlEncode(y) + R"("})"));
}

std::optional<std::string> PublicPem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_PUBKEY(bio.get(), key) != 1) return std::nullopt;
  return Contents(bio.get());
}

std::optional<std::string> PrivatePem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_secmem()));
  if (!bio ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return std::nullopt;
  }
  return Contents(bio.get());
}

Result<SigningKey> Describe(EVP_PKEY* key) {
  auto x = Coordinate(key, OSSL_PKEY_PARAM_EC_PUB_X);
  auto y = Coordinate(key, OSSL_PKEY_PARAM_EC_PUB_Y);
  auto public_pem = PublicPem(key);
  auto private_pem = PrivatePem(key);
  if (!x || !y || !public_pem || !private_pem) return LibraryFailure("describe a signing key");
  SigningKey described;
  described.kid = Thumbprint(*x, *y);
  described.private_pem = std::move(*private_pem);
  described.public_pem = std::move(*public_pem);
  described.x = std::move(*x);
  described.y = std::move(*y);
  return described;
}

// The PEM of a public point; nothing if the point is not on the curve.
std::optional<std::string> PemOfPoint(std::string_view x, std::string_view y) {
  const std::string point = "\x04" + std::string(x) + std::string(y);
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME,
                                      SN_X9_62_prime256v1, 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return std::nullopt;
  }
  const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
  const PkeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* raw = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &raw, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    ERR_clear_error();
    return std::nullopt;
  }
  const Pkey key(raw);
  return PublicPem(key.get());
}

std::size_t CountPrivateKeys(std::string_view pem) {
  std::size_t count = 0;
  for (std::string_view line : base::Split(pem, '\n')) {
    line = base::Trim(line);
    if (line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----")) ++count;
  }
  return count;
}

std::string Text(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::unexpected<base::Error> BadJwks(std::string message) {
  return Fail(Code::kInvalidArgument, "token_keys.jwks", "key document: " + std::move(message));
}

}  // namespace

Result<SigningKey> GenerateSigningKey(base::WallTime now) {
  const Pkey key(EVP_EC_gen(SN_X9_62_prime256v1));
  if (!key) return LibraryFailure("make a signing key");
  EXPANSE_ASSIGN_OR_RETURN(SigningKey described, Describe(key.get()));
  described.created_at = now;
  return described;
}

Result<std::vector<SigningKey>> ParseSigningKeys(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<SigningKey> keys;
  // The empty pass phrase makes an encrypted key an error instead of a question on the terminal.
  char no_pass_phrase[] = "";
  while (bio) {
    const Pkey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, no_pass_phrase));
    if (!key) break;
    if (!IsP256(key.get()) || keys.size() == kMaxKeys) {
      return Fail(Code::kInvalidArgument, "token_keys.pem",
                  "signing keys must be EC keys on P-256 (prime256v1), at most 64 of them");
    }
    EXPANSE_ASSIGN_OR_RETURN(SigningKey described, Describe(key.get()));
    keys.push_back(std::move(described));
  }
  ERR_clear_error();
  // A key that could not be read ends the loop like the end of the text does.
  if (keys.empty() || keys.size() != CountPrivateKeys(pem)) {
    return Fail(Code::kInvalidArgument, "token_keys.pem",
                "no readable, unencrypted private key in PEM form");
  }
  return keys;
}

std::string ToJwks(const std::vector<SigningKey>& keys) {
  nlohmann::json list = nlohmann::json::array();
  for (const SigningKey& key : keys) {
    list.push_back({{"kty", "EC"},
                    {"crv", "P-256"},
                    {"use", "sig"},
                    {"alg", "ES256"},
                    {"kid", key.kid},
                    {"x", base::Base64UrlEncode(key.x)},
                    {"y", base::Base64UrlEncode(key.y)}});
  }
  return nlohmann::json{{"keys", std::move(list)}}.dump();
}

Result<PublicKeySet> PublicKeySet::FromJwks(std::string_view json) {
  if (json.size() > kMaxJwksBytes) return BadJwks("too large");
  const auto document = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return BadJwks("not a JSON object");
  const auto list = document.find("keys");
  if (list == document.end() || !list->is_array() || list->size() > kMaxKeys) {
    return BadJwks("no list of keys, or too many");
  }
  PublicKeySet set;
  for (const auto& entry : *list) {
    if (!entry.is_object()) return BadJwks("a key is not an object");
    if (Text(entry, "kty") != "EC" || Text(entry, "crv") != "P-256") continue;
    if (const std::string alg = Text(entry, "alg"); !alg.empty() && alg != "ES256") continue;
    const auto x = base::Base64UrlDecode(Text(entry, "x"));
    const auto y = base::Base64UrlDecode(Text(entry, "y"));
    if (!x || !y || x->size() != kCoordinateBytes || y->size() != kCoordinateBytes) {
      return BadJwks("a key has malformed coordinates");
    }
    auto pem = PemOfPoint(*x, *y);
    if (!pem) return BadJwks("a key is not a point of the curve");
    std::string kid = Thumbprint(*x, *y);
    if (Text(entry, "kid") != kid) return BadJwks("the kid of a key is not its thumbprint");
    set.keys_.emplace(std::move(kid), std::move(*pem));
  }
  if (set.keys_.empty()) return BadJwks("no ES256 key");
  return set;
}

PublicKeySet PublicKeySet::FromSigningKeys(const std::vector<SigningKey>& keys) {
  PublicKeySet set;
  for (const SigningKey& key : keys) set.keys_.emplace(key.kid, key.public_pem);
  return set;
}

const std::string* PublicKeySet::Find(std::string_view kid) const {
  const auto at = keys_.find(kid);
  return at == keys_.end() ? nullptr : &at->second;
}

}  // namespace expanse::net
