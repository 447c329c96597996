// P-256 keys of access tokens: making, storing and naming them. Private keys are PEM (PKCS#8) in
// files of mode 0600; public keys travel as a JWKS document (RFC 7517) and are named by their
// thumbprint (RFC 7638), which is also the `kid` of the tokens.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace expanse::net {

struct SigningKey {
  std::string kid;
  std::string private_pem;
  std::string public_pem;
  std::string x;  // coordinates of the public point, 32 bytes each
  std::string y;
  base::WallTime created_at{};
};

// A new random key. Fails with token_keys.openssl only if the library does.
base::Result<SigningKey> GenerateSigningKey(base::WallTime now);
// Reads every private key in a PEM text, in order. Fails with token_keys.pem for text without a key
// or with anything but P-256 keys; the message never quotes the text.
base::Result<std::vector<SigningKey>> ParseSigningKeys(std::string_view pem);
// {"keys":[…]}, public halves only.
std::string ToJwks(const std::vector<SigningKey>& keys);

// Public keys by kid. Immutable after parsing; copies are cheap enough (a few hundred bytes a key).
class PublicKeySet {
 public:
  // Takes the ES256 keys of a JWKS document and skips keys of other kinds. The kid of a key must be
  // its thumbprint. Fails with token_keys.jwks for anything malformed, a document without a usable
  // key, or one with more than 64 keys.
  static base::Result<PublicKeySet> FromJwks(std::string_view json);
  static PublicKeySet FromSigningKeys(const std::vector<SigningKey>& keys);

  // The public key as PEM; null when unknown.
  const std::string* Find(std::string_view kid) const;
  std::size_t size() const { return keys_.size(); }

 private:
  std::map<std::string, std::string, std::less<>> keys_;
};

}  // namespace expanse::net
