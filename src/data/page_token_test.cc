#include "data/page_token.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "base/crypto.h"

namespace expanse::data {
namespace {

const std::string kId = "0193a8b2-0000-8000-8000-00000000000a";

store::ExecutionFilter Filter() {
  store::ExecutionFilter filter{.organisation_id = "org-1"};
  filter.users = {"ada", "grace"};
  return filter;
}

TEST(PageToken, ReadsBackAsWritten) {
  for (const std::int64_t micros :
       {std::int64_t{0}, std::int64_t{1'800'000'000'123'456}, std::int64_t{-1},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    const auto back = DecodePageToken(EncodePageToken({micros, kId}, Filter()), Filter());
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->sort_micros, micros);
    EXPECT_EQ(back->execution_id, kId);
  }
}

TEST(PageToken, BelongsToItsFilter) {
  const std::string token = EncodePageToken({1, kId}, Filter());
  store::ExecutionFilter same = Filter();
  std::swap(same.users[0], same.users[1]);
  EXPECT_TRUE(DecodePageToken(token, same));
  for (const auto& change : std::initializer_list<void (*)(store::ExecutionFilter&)>{
           [](store::ExecutionFilter& f) { f.organisation_id = "org-2"; },
           [](store::ExecutionFilter& f) { f.status = evidence::ExecutionStatus::kFailed; },
           [](store::ExecutionFilter& f) { f.outcome = evidence::Outcome::kTimeout; },
           [](store::ExecutionFilter& f) { f.users.pop_back(); },
           [](store::ExecutionFilter& f) { f.compute_id = "c"; },
           [](store::ExecutionFilter& f) { f.source_type = evidence::SourceType::kSlurm; },
           [](store::ExecutionFilter& f) { f.native_id = "7"; },
           [](store::ExecutionFilter& f) { f.started_after = base::FromMicros(1); },
           [](store::ExecutionFilter& f) { f.started_before = base::FromMicros(1); }}) {
    store::ExecutionFilter other = Filter();
    change(other);
    const auto back = DecodePageToken(token, other);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().reason, "page_token.filter");
  }
}

TEST(PageToken, RefusesWhatItDidNotMake) {
  const std::string token = EncodePageToken({1, kId}, Filter());
  std::string raw = *base::Base64UrlDecode(token);
  raw[0] = 2;
  const std::string other_version = base::Base64UrlEncode(raw);
  const std::string not_an_id =
      EncodePageToken({1, "0193a8b2-0000-8000-8000-00000000000'"}, Filter());
  for (const std::string& bad :
       {std::string("x"), std::string("!!!"), token.substr(0, 20), token + "A", other_version,
        not_an_id, std::string(100'000, 'A')}) {
    const auto back = DecodePageToken(bad, Filter());
    ASSERT_FALSE(back) << bad.substr(0, 80);
    EXPECT_EQ(back.error().reason, "page_token.malformed");
    EXPECT_EQ(back.error().code, base::Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace expanse::data
