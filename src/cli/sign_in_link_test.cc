#include "cli/sign_in_link.h"

#include <gtest/gtest.h>

namespace expanse::cli {
namespace {

TEST(SignInLink, GivesControlPlaneAndToken) {
  for (const char* text :
       {"https://x.test:8440/sign-in#exp_link_Ab-9_",
        "https://x.test:8440/sign-in#token=exp_link_Ab-9_",
        "https://x.test:8440/sign-in?token=exp_link_Ab-9_",
        " https://x.test:8440/sign-in?next=/#exp_link_Ab-9_\n",
        "https://x.test:8440/#exp_link_Ab-9_", "https://x.test:8440#exp_link_Ab-9_"}) {
    const auto link = ParseSignInLink(text);
    ASSERT_TRUE(link) << text;
    EXPECT_EQ(link->control_plane_url, "https://x.test:8440") << text;
    EXPECT_EQ(link->token, "exp_link_Ab-9_") << text;
  }
}

TEST(SignInLink, KeepsAPathPrefix) {
  EXPECT_EQ(ParseSignInLink("http://x.test/tools/expanse/sign-in#exp_link_a")->control_plane_url,
            "http://x.test/tools/expanse");
}

TEST(SignInLink, TakesTheSecretAlone) {
  const auto link = ParseSignInLink("exp_link_a");
  ASSERT_TRUE(link);
  EXPECT_TRUE(link->control_plane_url.empty());
  EXPECT_EQ(link->token, "exp_link_a");
}

TEST(SignInLink, RefusesTheRestWithoutRepeatingIt) {
  for (const char* text :
       {"", "https://x.test/sign-in", "https://x.test/sign-in#", "https://#exp_link_a",
        "ftp://x.test/sign-in#exp_link_a", "https://x.test/sign-in#a/../b", "two words",
        "https://x.test/sign-in?token=", "https://x.test/sign-in#other=secret"}) {
    const auto link = ParseSignInLink(text);
    ASSERT_FALSE(link) << text;
    EXPECT_EQ(link.error().error.code, base::Code::kInvalidArgument);
    EXPECT_EQ(link.error().error.message.find("exp_link"), std::string::npos);
  }
}

}  // namespace
}  // namespace expanse::cli
