#include "server/links.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace expanse::server {
namespace {

base::Result<ServerOptions> OptionsOf(const std::map<std::string, std::string>& flags,
                                      const base::Settings::Environment& environment = {}) {
  EXPANSE_ASSIGN_OR_RETURN(const auto settings,
                           base::Settings::Load(ServerSettings(), "", environment, flags));
  return ServerOptionsFrom(settings);
}

TEST(Links, OneProcessFindsItself) {
  auto options = OptionsOf({});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_TRUE(options->run_control && options->run_data && options->run_intelligence);
  ASSERT_TRUE(FillLinks(*options));
  EXPECT_EQ(options->control.public_url, "http://127.0.0.1:8440");
  EXPECT_EQ(options->control.data_public_url, "http://127.0.0.1:8441");
  EXPECT_EQ(options->control.intelligence_public_url, "http://127.0.0.1:8442");
  EXPECT_EQ(options->data_link.control_url, "http://127.0.0.1:8440");
  EXPECT_EQ(options->intelligence_link.control_url, "http://127.0.0.1:8440");
  EXPECT_NE(options->data_link.plane_secret, options->intelligence_link.plane_secret);
  EXPECT_EQ(options->control.plane_secret_hashes.at("data").size(), 1U);
  EXPECT_EQ(options->control.plane_secret_hashes.at("intelligence").size(), 1U);
}

TEST(Links, WhatIsSetStays) {
  auto options = OptionsOf({{"control.public_url", "https://c.example.org"},
                            {"control.intelligence_public_url", "https://i.example.org"},
                            {"intelligence.control_url", "http://10.0.0.1:1"}});
  ASSERT_TRUE(options) << options.error().message;
  ASSERT_TRUE(FillLinks(*options));
  EXPECT_EQ(options->control.public_url, "https://c.example.org");
  EXPECT_EQ(options->control.intelligence_public_url, "https://i.example.org");
  EXPECT_EQ(options->intelligence_link.control_url, "http://10.0.0.1:1");
  EXPECT_EQ(options->data_link.control_url, "http://127.0.0.1:8440");
}

TEST(Links, WithoutAnIntelligencePlaneControlNamesNone) {
  auto options = OptionsOf({{"planes", "control,data"}});
  ASSERT_TRUE(options && FillLinks(*options));
  EXPECT_FALSE(options->run_intelligence);
  EXPECT_EQ(options->control.intelligence_public_url, "");
  EXPECT_FALSE(options->control.plane_secret_hashes.contains("intelligence"));
}

TEST(Links, APlaneOfItsOwnMustBeTold) {
  for (const std::string plane : {"data", "intelligence"}) {
    auto options = OptionsOf({{"planes", plane}});
    ASSERT_TRUE(options);
    auto filled = FillLinks(*options);
    ASSERT_FALSE(filled);
    EXPECT_EQ(filled.error().reason, "server.control_url");
    options = OptionsOf({{"planes", plane}, {plane + ".control_url", "http://c:1"}});
    ASSERT_TRUE(options);
    filled = FillLinks(*options);
    ASSERT_FALSE(filled);
    EXPECT_EQ(filled.error().reason, "server.plane_secret");
    const std::string variable =
        plane == "data" ? "EXPANSE_DATA_PLANE_SECRET" : "EXPANSE_INTELLIGENCE_PLANE_SECRET";
    EXPECT_NE(filled.error().message.find(variable), std::string::npos) << filled.error().message;
    options = OptionsOf({{"planes", plane}, {plane + ".control_url", "http://c:1"}},
                        {{variable, std::string(40, 's')}});
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_TRUE(FillLinks(*options));
  }
}

TEST(Links, APortThatIsNotKnownBeforehandNeedsAUrl) {
  auto options = OptionsOf({{"intelligence.listen", "127.0.0.1:0"}});
  ASSERT_TRUE(options);
  const auto filled = FillLinks(*options);
  ASSERT_FALSE(filled);
  EXPECT_NE(filled.error().message.find("control.intelligence_public_url"), std::string::npos);
}

TEST(ServerOptions, KnowsItsPlanes) {
  const auto wrong = OptionsOf({{"planes", "control,brain"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().reason, "server.planes");
  EXPECT_EQ(OptionsOf({{"planes", ""}}).error().reason, "server.planes");
  const auto open = OptionsOf({{"intelligence.listen", "0.0.0.0:8442"}});
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().reason, "server.tls");
}

}  // namespace
}  // namespace expanse::server
