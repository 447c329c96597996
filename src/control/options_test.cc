#include "control/options.h"

#include <gtest/gtest.h>

#include "base/crypto.h"
#include "control/failure_limiter.h"

namespace expanse::control {
namespace {

using namespace std::chrono_literals;

base::Result<ControlOptions> Load(const std::map<std::string, std::string>& flags,
                                  const base::Settings::Environment& environment = {}) {
  EXPANSE_ASSIGN_OR_RETURN(const base::Settings settings,
                           base::Settings::Load(ControlSettings(), "", environment, flags));
  return ControlOptionsFrom(settings);
}

std::string Reason(const base::Result<ControlOptions>& options) {
  return options ? "ok" : options.error().reason;
}

TEST(ControlOptions, DefaultsAreThoseOfTheDocs) {
  const auto options = Load({});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->access_token_life, 10min);
  EXPECT_EQ(options->install_token_life, 1h);
  EXPECT_EQ(options->sign_in_link_life, 24h);
  EXPECT_EQ(options->thresholds.degraded_after, 90s);
  EXPECT_EQ(options->thresholds.offline_after, 5min);
  EXPECT_TRUE(options->plane_secret_hashes.empty());
}

TEST(ControlOptions, ReadsUrlsListsAndSecrets) {
  const std::string one(32, 'a');
  const std::string two(40, 'b');
  const auto options = Load({{"control.public_url", "https://expanse.example.org/control/"},
                             {"control.owner_submit_users", "ada,al"}},
                            {{"EXPANSE_CONTROL_DATA_PLANE_SECRETS", one + "," + two}});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->public_url, "https://expanse.example.org/control");
  EXPECT_EQ(options->owner_submit_users, (std::vector<std::string>{"ada", "al"}));
  EXPECT_EQ(options->plane_secret_hashes.at("data"),
            (std::vector<std::string>{base::Sha256Hex(one), base::Sha256Hex(two)}));
}

TEST(ControlOptions, RefusesNonsense) {
  EXPECT_EQ(Reason(Load({{"control.degraded_after", "20s"}})), "control.thresholds");
  EXPECT_EQ(Reason(Load({{"control.offline_after", "90s"}})), "control.thresholds");
  EXPECT_EQ(Reason(Load({{"control.access_token_life", "2h"}})), "settings.range");
  EXPECT_EQ(Reason(Load({}, {{"EXPANSE_CONTROL_DATA_PLANE_SECRETS", "short"}})),
            "control.plane_secret");
}

TEST(ControlOptions, ChecksPublicUrls) {
  for (const char* good :
       {"http://127.0.0.1:8080", "https://a", "https://[::1]:8443", "http://a/b/c"}) {
    EXPECT_EQ(CheckPublicUrl(good).value_or("refused"), good);
  }
  EXPECT_EQ(*CheckPublicUrl("https://a/b//"), "https://a/b");
  for (const char* bad :
       {"", "a", "ftp://a", "https://", "https:///x", "https://:80", "https://a?b", "https://a#b",
        "https://user@a", "https://a b", "https://a\n", "javascript:alert(1)", "HTTPS:/a"}) {
    EXPECT_FALSE(CheckPublicUrl(bad)) << bad;
  }
}

TEST(FailureLimiter, ForgivesWithTimeAndForgetsTheOldest) {
  base::FakeClock clock;
  FailureLimiter limiter(clock, {.burst = 2, .refill = 1s, .max_keys = 2});
  limiter.NoteFailure("a");
  EXPECT_TRUE(limiter.Allows("a"));
  limiter.NoteFailure("a");
  EXPECT_FALSE(limiter.Allows("a"));
  EXPECT_TRUE(limiter.Allows("b"));
  clock.Advance(999ms);
  EXPECT_FALSE(limiter.Allows("a"));
  clock.Advance(1ms);
  EXPECT_TRUE(limiter.Allows("a"));
  limiter.NoteFailure("b");
  limiter.NoteFailure("c");
  EXPECT_EQ(limiter.size(), 2U);
}

TEST(FailureLimiter, KeysPeersByWhatTheyCannotChange) {
  EXPECT_EQ(PeerNetwork("192.0.2.7:50412"), PeerNetwork("192.0.2.7:50413"));
  EXPECT_NE(PeerNetwork("192.0.2.7:1"), PeerNetwork("192.0.2.8:1"));
  EXPECT_EQ(PeerNetwork("[2001:db8:1:2::1]:80"), PeerNetwork("[2001:db8:1:2:ffff::9]:81"));
  EXPECT_NE(PeerNetwork("[2001:db8:1:2::1]:80"), PeerNetwork("[2001:db8:1:3::1]:80"));
  EXPECT_NE(PeerNetwork("[::ffff:192.0.2.7]:80"), PeerNetwork("[::ffff:192.0.2.8]:80"));
  EXPECT_EQ(PeerNetwork(""), "");
}

}  // namespace
}  // namespace expanse::control
