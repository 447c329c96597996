#include "base/flags.h"

#include <gtest/gtest.h>

namespace expanse::base {
namespace {

std::vector<SettingSpec> Specs() {
  return {{.name = "data.listen", .help = "address"},
          {.name = "verbose", .kind = SettingKind::kBool, .default_value = "false", .help = "more"},
          {.name = "plane.secret", .help = "secret", .secret = true}};
}

TEST(Flags, TakesBothSpellingsOfAValueAndLoneBooleans) {
  const auto flags =
      ParseFlags(Specs(), {"run", "--data-listen", "[::1]:1", "--verbose", "--config=/etc/x.json"});
  ASSERT_TRUE(flags.has_value()) << flags.error().message;
  EXPECT_EQ(flags->words, std::vector<std::string>{"run"});
  EXPECT_EQ(flags->settings.at("data.listen"), "[::1]:1");
  EXPECT_EQ(flags->settings.at("verbose"), "true");
  EXPECT_EQ(flags->config_file, "/etc/x.json");
}

TEST(Flags, NamesTheNearestFlagForAnUnknownOne) {
  const auto flags = ParseFlags(Specs(), {"--data-lisen", "x"});
  ASSERT_FALSE(flags.has_value());
  EXPECT_EQ(flags.error().reason, "flags.unknown");
  EXPECT_NE(flags.error().message.find("--data-listen"), std::string::npos);
}

TEST(Flags, RefusesSecretsAndMissingValues) {
  EXPECT_EQ(ParseFlags(Specs(), {"--plane-secret", "x"}).error().reason, "flags.secret");
  EXPECT_EQ(ParseFlags(Specs(), {"--data-listen"}).error().reason, "flags.value");
}

}  // namespace
}  // namespace expanse::base
