#include "schedulers/slurm/text/hostlist.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace expanse::schedulers::slurm {
namespace {

using Names = std::vector<std::string>;

Names Expanded(std::string_view text) {
  const auto hosts = ExpandHostlist(text);
  EXPECT_TRUE(hosts) << text << ": " << (hosts ? "" : hosts.error().message);
  if (!hosts) return {};
  const auto count = CountHosts(text);
  EXPECT_EQ(count.value_or(0), hosts->size()) << text;
  return *hosts;
}

TEST(Hostlist, ExpandsRangesAndKeepsPadding) {
  EXPECT_EQ(Expanded("n[001-003,12]"), (Names{"n001", "n002", "n003", "n12"}));
  EXPECT_EQ(Expanded("n[8-11]"), (Names{"n8", "n9", "n10", "n11"}));
  EXPECT_EQ(Expanded("n[098-101]"), (Names{"n098", "n099", "n100", "n101"}));
  EXPECT_EQ(Expanded("n[007]"), (Names{"n007"}));
}

TEST(Hostlist, MultipliesBrackets) {
  EXPECT_EQ(Expanded("rack[1-2]n[0-1]"), (Names{"rack1n0", "rack1n1", "rack2n0", "rack2n1"}));
  EXPECT_EQ(Expanded("a[1-2]-ib"), (Names{"a1-ib", "a2-ib"}));
  EXPECT_EQ(Expanded("[1-2]x"), (Names{"1x", "2x"}));
}

TEST(Hostlist, TakesNamesAndListsOfThem) {
  EXPECT_EQ(Expanded("alpha"), (Names{"alpha"}));
  EXPECT_EQ(Expanded("a,b[1-2],c.example.org"), (Names{"a", "b1", "b2", "c.example.org"}));
  EXPECT_EQ(Expanded(" a , b "), (Names{"a", "b"}));
  EXPECT_EQ(Expanded("a,a"), (Names{"a", "a"}));
}

TEST(Hostlist, IsEmptyForTheWordsForNothing) {
  for (std::string_view text : {"", "(null)", "None assigned", "None", "N/A"}) {
    EXPECT_EQ(Expanded(text), Names{}) << text;
  }
}

TEST(Hostlist, RefusesWhatIsNoList) {
  for (std::string_view text : {"a[", "a]", "a[1-", "a[]", "a[2-1]", "a[x]", "a[1,]", "a,,b", ",a",
                                "a[[1]]", "a b", "a\nb", "a/b", "a[1-2", "a[-1]", "a[1--2]"}) {
    const auto hosts = ExpandHostlist(text);
    ASSERT_FALSE(hosts) << text;
    EXPECT_EQ(hosts.error().reason, "slurm.hostlist_syntax") << text;
    EXPECT_FALSE(CountHosts(text)) << text;
  }
}

TEST(Hostlist, BuildsNothingBeyondItsLimit) {
  EXPECT_EQ(ExpandHostlist("n[1-10]", 10)->size(), 10);
  const auto over = ExpandHostlist("n[1-11]", 10);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().reason, "slurm.hostlist_too_long");
  for (std::string_view text :
       {"n[0-999999999999999999]", "a[0-99999]b[0-99999]c[0-99999]d[0-99999]e[0-99999]"}) {
    EXPECT_EQ(ExpandHostlist(text).error().reason, "slurm.hostlist_too_long") << text;
  }
  // Few characters, many bytes.
  const std::string longer(200, 'x');
  EXPECT_EQ(ExpandHostlist(longer + "[1-99999]").error().reason, "slurm.hostlist_too_long");
  EXPECT_EQ(ExpandHostlist("node-of-a-long-name[000001-200000]")->size(), 200'000);
}

TEST(Hostlist, CountsFarBeyondWhatItWouldExpand) {
  EXPECT_EQ(CountHosts("n[0-999999999999999999]"), 1'000'000'000'000'000'000);
  EXPECT_EQ(CountHosts("a[0-999999999]b[0-999999999]c[0-999999999]"), ~std::uint64_t{0});
}

TEST(Hostlist, ErrorsAreSafeToShow) {
  const auto hosts = ExpandHostlist("a[\x1b[2J");
  ASSERT_FALSE(hosts);
  EXPECT_EQ(hosts.error().message.find('\x1b'), std::string::npos);
}

TEST(Hostlist, ExpandsAWholeCluster) {
  const Names hosts = Expanded("r[00-99]c[0-9]n[001-100]");
  ASSERT_EQ(hosts.size(), 100'000);
  EXPECT_EQ(hosts.front(), "r00c0n001");
  EXPECT_EQ(hosts.back(), "r99c9n100");
}

}  // namespace
}  // namespace expanse::schedulers::slurm
