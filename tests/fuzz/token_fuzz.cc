// net::TokenVerifier on any bytes. An input that begins with 'r' is a token as it came; any other
// is a header line and a payload, which are signed with the key at hand, so that the parsers behind
// the signature are reached as well ("@KID" in the header stands for the key's name).
#include <openssl/bio.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/crypto.h"
#include "base/result.h"
#include "net/token.h"

namespace {

using namespace expanse;

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

struct Key {
  Key() : described(net::GenerateSigningKey(kNow).value()) {
    BIO* bio = BIO_new_mem_buf(described.private_pem.data(), -1);
    pkey = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    EXPANSE_CHECK(pkey != nullptr);
    keys = net::PublicKeySet::FromSigningKeys({described});
  }
  net::SigningKey described;
  net::PublicKeySet keys;
  EVP_PKEY* pkey = nullptr;
};

// R and S, 32 bytes each.
std::string Sign(EVP_PKEY* key, const std::string& text) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::array<unsigned char, 128> der{};
  std::size_t size = der.size();
  EXPANSE_CHECK(EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key) == 1);
  EXPANSE_CHECK(EVP_DigestSign(context, der.data(), &size,
                               reinterpret_cast<const unsigned char*>(text.data()),
                               text.size()) == 1);
  EVP_MD_CTX_free(context);
  const unsigned char* at = der.data();
  ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size));
  std::string raw(64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + 32, 32);
  ECDSA_SIG_free(signature);
  return raw;
}

std::string Assemble(const Key& key, std::string_view input) {
  const auto line = input.find('\n');
  std::string header(input.substr(0, line));
  if (const auto at = header.find("@KID"); at != std::string::npos) {
    header.replace(at, 4, key.described.kid);
  }
  const std::string_view payload =
      line == std::string_view::npos ? std::string_view{} : input.substr(line + 1);
  const std::string text = base::Base64UrlEncode(header) + "." + base::Base64UrlEncode(payload);
  return text + "." + base::Base64UrlEncode(Sign(key.pkey, text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Key key;
  static const net::TokenVerifier verifier{net::TokenPolicy()};
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const bool raw = input.starts_with('r');
  const std::string token = raw ? std::string(input.substr(1)) : Assemble(key, input);
  const auto caller = verifier.Verify(token, key.keys, kNow);
  if (!caller) {
    EXPANSE_CHECK(caller.error().reason.starts_with("token."));
    EXPANSE_CHECK(caller.error().code == base::Code::kUnauthenticated);
    return 0;
  }
  EXPANSE_CHECK(!raw);  // nobody else has the key
  EXPANSE_CHECK(caller->kind != net::CallerKind::kAnonymous);
  EXPANSE_CHECK(!caller->subject.empty());
  EXPANSE_CHECK(caller->expires_at + std::chrono::seconds(30) > kNow);
  EXPANSE_CHECK(caller->kind == net::CallerKind::kPlane || !caller->session_id.empty());
  return 0;
}
