#include "server/listen.h"

#include <gtest/gtest.h>

namespace expanse::server {
namespace {

TEST(ListenAddress, ReadsIpv4AndBracketedIpv6) {
  EXPECT_EQ(ParseListenAddress("127.0.0.1:8440")->port, 8440);
  EXPECT_EQ(ParseListenAddress("[::1]:0")->address, "::1");
  EXPECT_EQ(ParseListenAddress("0.0.0.0:65535")->port, 65535);
}

TEST(ListenAddress, RefusesWhatIsNoAddress) {
  for (const char* text : {"", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                           "localhost:80", "::1:80", "[::1]", "[127.0.0.1]:80", "1.2.3:80"}) {
    EXPECT_FALSE(ParseListenAddress(text).has_value()) << text;
  }
}

TEST(ListenAddress, KnowsLoopbackAndItsOwnUrl) {
  EXPECT_TRUE(IsLoopback(*ParseListenAddress("127.1.2.3:1")));
  EXPECT_TRUE(IsLoopback(*ParseListenAddress("[::1]:1")));
  EXPECT_FALSE(IsLoopback(*ParseListenAddress("0.0.0.0:1")));
  EXPECT_EQ(LocalUrl(*ParseListenAddress("0.0.0.0:84"), false), "http://127.0.0.1:84");
  EXPECT_EQ(LocalUrl(*ParseListenAddress("[::]:84"), true), "https://[::1]:84");
}

}  // namespace
}  // namespace expanse::server
