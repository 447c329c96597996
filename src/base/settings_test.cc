#include "base/settings.h"

#include <gtest/gtest.h>

namespace expanse::base {
namespace {

using namespace std::chrono_literals;

std::vector<SettingSpec> Specs() {
  return {{.name = "data.listen", .default_value = "127.0.0.1:0", .help = "Address"},
          {.name = "ingest.max_body",
           .kind = SettingKind::kBytes,
           .default_value = "16MiB",
           .help = "Largest body",
           .min = 1024,
           .max = 1 << 30},
          {.name = "tick",
           .kind = SettingKind::kDuration,
           .default_value = "10s",
           .help = "Period",
           .min = 1,
           .max = 3600},
          {.name = "workers",
           .kind = SettingKind::kInt,
           .default_value = "4",
           .help = "Threads",
           .min = 1},
          {.name = "verbose", .kind = SettingKind::kBool, .default_value = "false", .help = "More"},
          {.name = "origins", .kind = SettingKind::kList, .help = "Origins"},
          {.name = "key", .help = "Key", .secret = true, .environment = "THE_KEY"}};
}

Result<Settings> Load(std::string_view file, const Settings::Environment& environment = {},
                      const std::map<std::string, std::string>& flags = {}) {
  return Settings::Load(Specs(), file, environment, flags);
}

TEST(Settings, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  EXPECT_EQ(Load("")->GetInt("workers"), 4);
  EXPECT_EQ(Load("")->SourceOf("workers"), SettingSource::kDefault);
  const char* file = R"({"workers": 5})";
  EXPECT_EQ(Load(file)->GetInt("workers"), 5);
  EXPECT_EQ(Load(file, {{"EXPANSE_WORKERS", "6"}})->GetInt("workers"), 6);
  const auto all = Load(file, {{"EXPANSE_WORKERS", "6"}}, {{"workers", "7"}});
  EXPECT_EQ(all->GetInt("workers"), 7);
  EXPECT_EQ(all->SourceOf("workers"), SettingSource::kFlag);
  EXPECT_EQ(Load(file, {{"EXPANSE_WORKERS", ""}})->GetInt("workers"), 5)
      << "an empty variable is none";
}

TEST(Settings, TellsTheTextOfEveryKind) {
  const auto settings = Load("", {}, {{"workers", "7"}});
  EXPECT_EQ(settings->TextOf("workers"), "7");
  EXPECT_EQ(settings->TextOf("tick"), "10s");
  EXPECT_EQ(settings->TextOf("ingest.max_body"), "16MiB");
}

TEST(Settings, ReadsEveryKind) {
  const auto settings = Load(R"({
    // comments are fine
    "data": {"listen": "0.0.0.0:80"}, "ingest": {"max_body": 2048}, "tick": "1m30s", "verbose": true,
    "origins": ["https://a", " https://b "]})",
                             {{"THE_KEY", "s"}});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->GetString("data.listen"), "0.0.0.0:80");
  EXPECT_EQ(settings->GetBytes("ingest.max_body"), Bytes{2048});
  EXPECT_EQ(settings->GetDuration("tick"), 90s);
  EXPECT_TRUE(settings->GetBool("verbose"));
  EXPECT_EQ(settings->GetList("origins"), (std::vector<std::string>{"https://a", "https://b"}));
  EXPECT_EQ(settings->GetString("key"), "s");
}

TEST(Settings, NamesTheSettingAndWhereItsValueCameFrom) {
  const auto file = Load(R"({"tick": "soon"})");
  EXPECT_EQ(file.error().reason, "settings.kind");
  EXPECT_NE(file.error().message.find("\"tick\" in the configuration file"), std::string::npos);
  const auto environment = Load("", {{"EXPANSE_TICK", "2h"}});
  EXPECT_EQ(environment.error().reason, "settings.range");
  EXPECT_NE(environment.error().message.find("EXPANSE_TICK"), std::string::npos);
  EXPECT_NE(environment.error().message.find("1s to 1h"), std::string::npos)
      << environment.error().message;
  const auto flag = Load("", {}, {{"ingest.max_body", "1K"}});
  EXPECT_TRUE(flag) << "bounds belong to what is allowed";
  EXPECT_EQ(Load("", {}, {{"ingest.max_body", "1"}}).error().reason, "settings.range");
  EXPECT_EQ(Load("", {}, {{"workers", "many"}}).error().reason, "settings.kind");
}

TEST(Settings, RefusesWhatIsUnknownOrNoJson) {
  const auto unknown = Load(R"({"wrokers": 5})");
  EXPECT_EQ(unknown.error().reason, "settings.unknown");
  EXPECT_NE(unknown.error().message.find("did you mean \"workers\""), std::string::npos);
  EXPECT_EQ(Load("[]").error().reason, "settings.syntax");
  EXPECT_EQ(Load("{").error().reason, "settings.syntax");
  EXPECT_EQ(Load(R"({"workers": null})").error().reason, "settings.kind");
  EXPECT_EQ(Load(R"({"origins": [1]})").error().reason, "settings.kind");
}

TEST(Settings, NeverPrintsASecret) {
  std::vector<SettingSpec> specs = {{.name = "pin",
                                     .kind = SettingKind::kInt,
                                     .default_value = "0",
                                     .help = "Pin",
                                     .min = 0,
                                     .max = 9999,
                                     .secret = true}};
  for (const char* value : {"hunter2", "123456"}) {
    const auto settings = Settings::Load(specs, "", {{"EXPANSE_PIN", value}}, {});
    ASSERT_FALSE(settings);
    EXPECT_EQ(settings.error().message.find(value), std::string::npos) << settings.error().message;
  }
  EXPECT_EQ(Settings::Load(specs, "", {}, {{"pin", "1"}}).error().reason, "settings.secret");
  EXPECT_EQ(SettingsHelp(specs), "");
}

TEST(Settings, DocumentsItself) {
  const std::string markdown = SettingsMarkdown(Specs());
  EXPECT_NE(markdown.find("| `ingest.max_body` | `--ingest-max-body` | `EXPANSE_INGEST_MAX_BODY` | "
                          "`16MiB` | Largest body (1 KiB to 1 GiB) |"),
            std::string::npos)
      << markdown;
  EXPECT_NE(markdown.find("| `key` |  | `THE_KEY` |"), std::string::npos);
  EXPECT_NE(SettingsHelp(Specs()).find("--tick duration"), std::string::npos);
  EXPECT_EQ(SettingsHelp(Specs()).find("--key"), std::string::npos);
}

TEST(SettingsDeathTest, AnUndeclaredNameOrKindIsABug) {
  const auto settings = Load("");
  EXPECT_DEATH((void)settings->GetInt("nope"), "broken invariant");
  EXPECT_DEATH((void)settings->GetInt("tick"), "broken invariant");
  EXPECT_DEATH((void)settings->GetString("tick"), "broken invariant");
}

}  // namespace
}  // namespace expanse::base
