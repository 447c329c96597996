#include "base/crypto.h"

#include <gtest/gtest.h>

#include <set>

namespace expanse::base {
namespace {

using namespace std::chrono_literals;

TEST(Crypto, KnownDigests) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256("x").size(), 32U);
  // RFC 3720, B.4, and the usual check value.
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(Crc32c("56789", Crc32c("1234")), Crc32c("123456789")) << "in pieces";
  EXPECT_EQ(Crc32c(""), 0U);
}

TEST(Crypto, EncodingsRoundTrip) {
  for (std::size_t size = 0; size < 70; ++size) {
    const std::string data = RandomBytes(size);
    EXPECT_EQ(HexDecode(HexEncode(data)), data);
    EXPECT_EQ(Base64UrlDecode(Base64UrlEncode(data)), data);
  }
  EXPECT_EQ(Base64UrlEncode("\xFB\xFF\xFE"), "-__-");
  EXPECT_EQ(HexDecode("0aFF"), std::string("\x0A\xFF"));
}

TEST(Crypto, DecodersAcceptOneSpellingOnly) {
  for (const char* text : {"a", "ab=", "a+b/", "ab==", "a b", "AB"})
    EXPECT_FALSE(Base64UrlDecode(text)) << text;
  EXPECT_TRUE(Base64UrlDecode("AA"));
  for (const char* text : {"a", "0g", "0x", " 0"}) EXPECT_FALSE(HexDecode(text)) << text;
}

TEST(Crypto, UuidsSortByTimeAndDiffer) {
  const WallTime now(1'796'029'687s);
  const std::string early = NewUuid(now);
  EXPECT_TRUE(IsUuid(early));
  EXPECT_EQ(early[14], '7');
  EXPECT_NE(std::string("89ab").find(early[19]), std::string::npos);
  EXPECT_LT(early, NewUuid(now + 1ms));
  std::set<std::string> all;
  for (int i = 0; i < 1000; ++i) all.insert(NewUuid(now));
  EXPECT_EQ(all.size(), 1000U);
  for (const char* text :
       {"", "0195f3a2-1111-7222-8333-44445555666", "0195F3A2-1111-7222-8333-444455556666",
        "0195f3a2x1111-7222-8333-444455556666", "0195f3a2-1111-7222-8333-4444555566661"}) {
    EXPECT_FALSE(IsUuid(text)) << text;
  }
}

TEST(Crypto, SecretsHaveTheirPrefix) {
  const std::string secret = NewSecret("exp_user_");
  EXPECT_TRUE(IsSecret(secret, "exp_user_"));
  EXPECT_FALSE(IsSecret(secret, "exp_compute_"));
  EXPECT_FALSE(IsSecret(secret + "A", "exp_user_"));
  EXPECT_FALSE(IsSecret("exp_user_", "exp_user_"));
  EXPECT_NE(secret, NewSecret("exp_user_"));
}

TEST(Crypto, ComparesWholeStrings) {
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_TRUE(ConstantTimeEqual("abc", "abc"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "abd"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "ab"));
}

}  // namespace
}  // namespace expanse::base
