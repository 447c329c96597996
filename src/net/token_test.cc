#include "net/token.h"

#include <gtest/gtest.h>
#include <jwt.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/crypto.h"
#include "base/files.h"
#include "net/token_cache.h"

namespace expanse::net {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

Caller Somebody() {
  Caller caller;
  caller.kind = CallerKind::kUser;
  caller.subject = "user-1";
  caller.organisation_id = "organisation-1";
  caller.session_id = "session-1";
  caller.permissions = {"computes.read", "executions.read"};
  return caller;
}

class TokenTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.directory = base::JoinPath(dir_.path(), "keys");
    ring_ = KeyRing::Open(options_, clock_).value();
  }

  std::string Sign(const Caller& caller = Somebody(), std::chrono::seconds life = 600s) {
    return TokenSigner(policy_, *ring_, clock_).Sign(caller, life).value().token;
  }
  base::Result<Caller> Verify(std::string_view token) {
    return TokenVerifier(policy_).Verify(token, *ring_->Public(), clock_.Now());
  }
  std::string Reason(std::string_view token) {
    const auto caller = Verify(token);
    if (caller) return "accepted";
    EXPECT_EQ(caller.error().code, base::Code::kUnauthenticated);
    return caller.error().reason;
  }
  json GoodClaims() {
    const auto now = base::ToMicros(clock_.Now()) / 1'000'000;
    return {{"iss", policy_.issuer},
            {"aud", policy_.audience},
            {"sub", "user-1"},
            {"kind", "user"},
            {"org", "organisation-1"},
            {"sid", "session-1"},
            {"nbf", now},
            {"exp", now + 600}};
  }
  // A token signed with our own key whose claims or algorithm are somebody else's idea.
  std::string Forge(const json& claims, jwt_alg_t alg = JWT_ALG_ES256, std::string key = {}) {
    jwt_t* jwt = nullptr;
    EXPECT_EQ(jwt_new(&jwt), 0);
    if (key.empty() && alg == JWT_ALG_ES256) key = ring_->Current()->private_pem;
    EXPECT_EQ(jwt_add_header(jwt, "kid", ring_->Current()->kid.c_str()), 0);
    EXPECT_EQ(jwt_add_grants_json(jwt, claims.dump().c_str()), 0);
    const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
    EXPECT_EQ(jwt_set_alg(jwt, alg, key.empty() ? nullptr : bytes, static_cast<int>(key.size())),
              0);
    char* text = jwt_encode_str(jwt);
    std::string token = text;
    free(text);
    jwt_free(jwt);
    return token;
  }

  base::TempDir dir_ = base::TempDir::Create().value();
  base::FakeClock clock_;
  TokenPolicy policy_;
  KeyRingOptions options_;
  std::unique_ptr<KeyRing> ring_;
};

TEST_F(TokenTest, CarriesTheCaller) {
  const auto caller = Verify(Sign());
  ASSERT_TRUE(caller) << caller.error().message;
  EXPECT_EQ(caller->kind, CallerKind::kUser);
  EXPECT_EQ(caller->subject, "user-1");
  EXPECT_EQ(caller->organisation_id, "organisation-1");
  EXPECT_EQ(caller->session_id, "session-1");
  EXPECT_EQ(caller->permissions, (std::vector<std::string>{"computes.read", "executions.read"}));
  EXPECT_EQ(caller->expires_at, clock_.Now() + 600s);
}

TEST_F(TokenTest, CarriesComputesAndPlanes) {
  Caller compute;
  compute.kind = CallerKind::kCompute;
  compute.subject = "compute-1";
  compute.organisation_id = "organisation-1";
  compute.session_id = "credential-1";
  EXPECT_EQ(Verify(Sign(compute))->kind, CallerKind::kCompute);
  Caller plane;
  plane.kind = CallerKind::kPlane;
  plane.subject = "data";
  const auto verified = Verify(Sign(plane));
  ASSERT_TRUE(verified);
  EXPECT_EQ(verified->kind, CallerKind::kPlane);
  EXPECT_EQ(verified->organisation_id, "");
}

TEST_F(TokenTest, ExpiresWithBoundedSkew) {
  const std::string token = Sign();
  clock_.Advance(600s + policy_.clock_skew - 1s);
  EXPECT_EQ(Reason(token), "accepted");
  clock_.Advance(1s);
  EXPECT_EQ(Reason(token), "token.expired");
}

TEST_F(TokenTest, IsNotValidBeforeItsTime) {
  const std::string token = Sign();
  clock_.JumpWall(-30s);
  EXPECT_EQ(Reason(token), "accepted");
  clock_.JumpWall(-1s);
  EXPECT_EQ(Reason(token), "token.not_yet_valid");
}

TEST_F(TokenTest, RefusesEveryOtherAlgorithm) {
  EXPECT_EQ(Reason(Forge(GoodClaims())), "accepted");
  EXPECT_EQ(Reason(Forge(GoodClaims(), JWT_ALG_NONE)), "token.malformed");
  // The classic confusion: the public key, which everybody has, as the secret of an HMAC.
  EXPECT_EQ(Reason(Forge(GoodClaims(), JWT_ALG_HS256, ring_->Current()->public_pem)),
            "token.malformed");
  // The header says ES256, the signature is an HMAC's of the right length.
  std::string token = Forge(GoodClaims(), JWT_ALG_HS512, ring_->Current()->public_pem);
  const std::string header =
      R"({"alg":"ES256","typ":"JWT","kid":")" + ring_->Current()->kid + "\"}";
  token.replace(0, token.find('.'), base::Base64UrlEncode(header));
  EXPECT_EQ(Reason(token), "token.signature");
  // A signature that is not there.
  token.resize(token.rfind('.') + 1);
  EXPECT_EQ(Reason(token), "token.malformed");
}

TEST_F(TokenTest, RefusesForeignIssuerAudienceAndKey) {
  json claims = GoodClaims();
  claims["iss"] = "somebody-else";
  EXPECT_EQ(Reason(Forge(claims)), "token.foreign");
  claims = GoodClaims();
  claims["aud"] = "another-product";
  EXPECT_EQ(Reason(Forge(claims)), "token.foreign");
  claims["aud"] = json::array({"expanse"});
  EXPECT_EQ(Reason(Forge(claims)), "token.foreign");

  options_.directory = base::JoinPath(dir_.path(), "others");
  const auto others = KeyRing::Open(options_, clock_).value();
  const auto token = TokenSigner(policy_, *others, clock_).Sign(Somebody(), 600s).value().token;
  EXPECT_EQ(Reason(token), "token.unknown_key");
  // Their key under the name of ours.
  EXPECT_EQ(Reason(Forge(GoodClaims(), JWT_ALG_ES256, others->Current()->private_pem)),
            "token.signature");
}

TEST_F(TokenTest, RefusesClaimsThatSayTooLittleOrNonsense) {
  struct Case {
    const char* what;
    std::function<void(json&)> change;
  };
  const std::vector<Case> cases = {
      {"no subject", [](json& c) { c.erase("sub"); }},
      {"empty subject", [](json& c) { c["sub"] = ""; }},
      {"subject is a number", [](json& c) { c["sub"] = 7; }},
      {"no kind", [](json& c) { c.erase("kind"); }},
      {"anonymous kind", [](json& c) { c["kind"] = "anonymous"; }},
      {"unknown kind", [](json& c) { c["kind"] = "root"; }},
      {"no session", [](json& c) { c.erase("sid"); }},
      {"no organisation", [](json& c) { c.erase("org"); }},
      {"no expiry", [](json& c) { c.erase("exp"); }},
      {"expiry is text", [](json& c) { c["exp"] = "never"; }},
      {"expiry is a fraction", [](json& c) { c["exp"] = 1.9e9; }},
      {"expiry beyond all time", [](json& c) { c["exp"] = INT64_MAX; }},
      {"negative expiry", [](json& c) { c["exp"] = -1; }},
      {"start is text", [](json& c) { c["nbf"] = "now"; }},
      {"permissions are text", [](json& c) { c["perms"] = "all"; }},
      {"a permission is a number", [](json& c) { c["perms"] = json::array({1}); }},
      {"too many permissions",
       [](json& c) { c["perms"] = json(std::vector<std::string>(300, "p")); }},
  };
  for (const Case& bad : cases) {
    json claims = GoodClaims();
    bad.change(claims);
    EXPECT_EQ(Reason(Forge(claims)), "token.malformed") << bad.what;
  }
}

TEST_F(TokenTest, RefusesTamperedBytesEverywhere) {
  const std::string token = Sign();
  for (std::size_t i = 0; i < token.size(); i += 3) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_NE(Reason(changed), "accepted") << "byte " << i;
  }
  for (std::size_t i = 0; i < token.size(); i += 5) {
    EXPECT_NE(Reason(token.substr(0, i)), "accepted") << "cut at " << i;
  }
}

TEST_F(TokenTest, RefusesWhatIsNotAToken) {
  const std::string token = Sign();
  const std::string nul("a\0b.c.d", 7);
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("..."), nul, token + ".",
        token + "=", " " + token, token + "\n", "." + token, std::string(100'000, 'a'),
        std::string("e30.e30.") + std::string(86, 'A')}) {
    EXPECT_EQ(Reason(text), "token.malformed") << text.substr(0, 40);
  }
}

TEST_F(TokenTest, RefusesCriticalExtensions) {
  const std::string header =
      R"({"alg":"ES256","crit":["b64"],"b64":false,"kid":")" + ring_->Current()->kid + "\"}";
  std::string token = Sign();
  token.replace(0, token.find('.'), base::Base64UrlEncode(header));
  EXPECT_EQ(Reason(token), "token.malformed");
}

TEST_F(TokenTest, SurvivesARestart) {
  const std::string token = Sign();
  ring_ = KeyRing::Open(options_, clock_).value();
  EXPECT_EQ(Reason(token), "accepted");
}

TEST_F(TokenTest, KeysArePrivateToTheirOwner) {
  const auto names = base::ListDirectory(options_.directory).value();
  ASSERT_EQ(names.size(), 1U);
  const std::string path = base::JoinPath(options_.directory, names[0]);
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto opened = KeyRing::Open(options_, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().reason, "token_keys.permissions");
}

TEST_F(TokenTest, RotatesThroughPublicationToRetirement) {
  const std::string first_kid = ring_->Current()->kid;
  const std::string early = Sign(Somebody(), 3600s);
  clock_.Advance(options_.rotate_after - options_.publish_ahead);
  ASSERT_TRUE(ring_->Maintain());
  // Published, so that other planes can fetch it before they meet it, but not signing yet.
  EXPECT_EQ(ring_->Public()->size(), 2U);
  EXPECT_EQ(ring_->Current()->kid, first_kid);
  ASSERT_TRUE(ring_->Maintain());
  EXPECT_EQ(ring_->Public()->size(), 2U);

  const std::string before = Sign(Somebody(), 3600s);
  clock_.Advance(options_.publish_ahead);
  EXPECT_NE(ring_->Current()->kid, first_kid);
  EXPECT_EQ(Reason(before), "accepted") << "the older key still verifies";
  const std::string after = Sign();
  EXPECT_EQ(Reason(after), "accepted");
  ASSERT_TRUE(ring_->Maintain());
  EXPECT_NE(ring_->Public()->Find(first_kid), nullptr);

  clock_.Advance(options_.keep_after);
  ASSERT_TRUE(ring_->Maintain());
  EXPECT_EQ(ring_->Public()->Find(first_kid), nullptr);
  EXPECT_EQ(base::ListDirectory(options_.directory)->size(), 1U);
  EXPECT_EQ(Reason(early), "token.unknown_key");
}

TEST_F(TokenTest, RotatesOnDemand) {
  const std::string first_kid = ring_->Current()->kid;
  ASSERT_TRUE(ring_->Rotate());
  ASSERT_TRUE(ring_->Rotate());
  EXPECT_EQ(ring_->Public()->size(), 3U);
  EXPECT_EQ(ring_->Current()->kid, first_kid);
  clock_.Advance(options_.publish_ahead + 1s);
  EXPECT_NE(ring_->Current()->kid, first_kid);
}

TEST_F(TokenTest, ReadsAMountedKeyFile) {
  const SigningKey newer = GenerateSigningKey(clock_.Now()).value();
  const SigningKey older = GenerateSigningKey(clock_.Now()).value();
  options_.file = base::JoinPath(dir_.path(), "mounted.pem");
  ASSERT_TRUE(
      base::WriteFileAtomically(options_.file, newer.private_pem + older.private_pem, 0440));
  const auto ring = KeyRing::Open(options_, clock_).value();
  EXPECT_EQ(ring->Current()->kid, newer.kid);
  EXPECT_EQ(ring->Public()->size(), 2U);
  EXPECT_EQ(ring->Rotate().error().reason, "token_keys.mounted");
  ASSERT_EQ(::chmod(options_.file.c_str(), 0666), 0);
  EXPECT_EQ(KeyRing::Open(options_, clock_).error().reason, "token_keys.permissions");
}

TEST_F(TokenTest, CacheAnswersAsTheVerifierDoes) {
  CachingVerifier verifier(policy_);
  const std::string token = Sign();
  const auto keys = ring_->Public();
  for (int i = 0; i < 2; ++i) {
    const auto caller = verifier.Verify(token, keys, clock_.Now());
    ASSERT_TRUE(caller);
    EXPECT_EQ(caller->session_id, "session-1");
  }
  EXPECT_EQ(verifier.size(), 1U);
  EXPECT_EQ(verifier.Verify(token + "A", keys, clock_.Now()).error().reason, "token.malformed");
  EXPECT_EQ(verifier.size(), 1U) << "only good ones are kept";
  EXPECT_EQ(verifier.Verify(token, keys, clock_.Now() + 630s).error().reason, "token.expired");
}

TEST_F(TokenTest, CacheForgetsWithTheKeys) {
  CachingVerifier verifier(policy_);
  const std::string token = Sign();
  ASSERT_TRUE(verifier.Verify(token, ring_->Public(), clock_.Now()));
  options_.directory = base::JoinPath(dir_.path(), "others");
  const auto others = KeyRing::Open(options_, clock_).value();
  EXPECT_EQ(verifier.Verify(token, others->Public(), clock_.Now()).error().reason,
            "token.unknown_key");
}

TEST_F(TokenTest, CacheIsBounded) {
  CachingVerifier verifier(policy_, /*capacity=*/2);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(verifier.Verify(Sign(), ring_->Public(), clock_.Now()));
  EXPECT_EQ(verifier.size(), 2U);
}

TEST(TokenKeys, RefusesOtherKeysThanP256) {
  EVP_PKEY* other = EVP_EC_gen("P-384");
  BIO* bio = BIO_new(BIO_s_mem());
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(bio, other, nullptr, nullptr, 0, nullptr, nullptr), 1);
  char* data = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(bio, &data));
  const std::string p384(data, size);
  BIO_free(bio);
  EVP_PKEY_free(other);
  EXPECT_EQ(ParseSigningKeys(p384).error().reason, "token_keys.pem");
  EXPECT_EQ(ParseSigningKeys("").error().reason, "token_keys.pem");
  EXPECT_EQ(ParseSigningKeys("hello").error().reason, "token_keys.pem");
  const std::string pem = GenerateSigningKey({}).value().private_pem;
  EXPECT_EQ(ParseSigningKeys(pem.substr(0, pem.size() / 2)).error().reason, "token_keys.pem");
  EXPECT_EQ(ParseSigningKeys(pem + pem.substr(0, 80)).error().reason, "token_keys.pem");
  EXPECT_EQ(ParseSigningKeys(pem)->size(), 1U);
}

TEST(TokenKeys, ThumbprintIsThatOfTheRfc) {
  // The EC key of RFC 7517 appendix A.1; its thumbprint was made with `openssl dgst -sha256`.
  const std::string x = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4";
  const std::string y = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM";
  const std::string kid = "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s";
  const json document = {
      {"keys", {{{"kty", "EC"}, {"crv", "P-256"}, {"x", x}, {"y", y}, {"kid", kid}}}}};
  const auto set = PublicKeySet::FromJwks(document.dump());
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_NE(set->Find(kid), nullptr);
}

TEST(TokenKeys, JwksRoundTripsAndRefusesNonsense) {
  const SigningKey key = GenerateSigningKey({}).value();
  const std::string good = ToJwks({key});
  ASSERT_TRUE(PublicKeySet::FromJwks(good));
  EXPECT_EQ(*PublicKeySet::FromJwks(good)->Find(key.kid), key.public_pem);
  EXPECT_EQ(good.find("\"d\""), std::string::npos) << "the private half must not be published";

  json off_curve = json::parse(good);
  off_curve["keys"][0]["y"] = base::Base64UrlEncode(std::string(32, '\x01'));
  json renamed = json::parse(good);
  renamed["keys"][0]["kid"] = "mine";
  json short_x = json::parse(good);
  short_x["keys"][0]["x"] = "AAAA";
  json rsa = json::parse(good);
  rsa["keys"][0]["kty"] = "RSA";
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"keys":{}})"),
        std::string(R"({"keys":[]})"), std::string(R"({"keys":[7]})"), off_curve.dump(),
        renamed.dump(), short_x.dump(), rsa.dump(), std::string(200'000, ' ')}) {
    const auto set = PublicKeySet::FromJwks(bad);
    ASSERT_FALSE(set) << bad.substr(0, 100);
    EXPECT_EQ(set.error().reason, "token_keys.jwks");
  }
}

}  // namespace
}  // namespace expanse::net
