#include "schedulers/slurm/row_filter.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace expanse::schedulers::slurm {
namespace {

TEST(HashBytes, DependsOnEveryByteTheLengthAndTheSeed) {
  std::set<std::uint64_t> seen;
  std::string text(40, '\0');
  for (std::size_t size = 0; size <= text.size(); ++size)
    EXPECT_TRUE(seen.insert(HashBytes(1, text.substr(0, size))).second) << size;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[i] = static_cast<char>(1U << bit);
      EXPECT_TRUE(seen.insert(HashBytes(1, other)).second) << i;
    }
  }
  EXPECT_TRUE(seen.insert(HashBytes(2, text)).second);
  // It is in files: never another one for the same bytes.
  EXPECT_EQ(HashBytes(7, "a row of squeue"), 0x6984eafb9171922aULL);
}

TEST(RowFilter, PassesNewAndChangedRowsOnce) {
  RowFilter filter;
  filter.BeginListing();
  EXPECT_TRUE(filter.IsNew(1, 100));
  EXPECT_TRUE(filter.IsNew(2, 200));
  EXPECT_TRUE(filter.EndListing().empty());
  filter.BeginListing();
  EXPECT_FALSE(filter.IsNew(1, 100));
  EXPECT_TRUE(filter.IsNew(2, 201));
  EXPECT_TRUE(filter.EndListing().empty());
}

TEST(RowFilter, TellsWhatIsGone) {
  RowFilter filter;
  filter.Expect(3);
  filter.BeginListing();
  EXPECT_TRUE(filter.IsNew(1, 100));
  EXPECT_TRUE(filter.IsNew(2, 200));
  EXPECT_EQ(filter.EndListing(), (std::vector<std::uint32_t>{3}));
  filter.BeginListing();
  EXPECT_FALSE(filter.IsNew(2, 200));
  EXPECT_EQ(filter.EndListing(), (std::vector<std::uint32_t>{1}));
  filter.BeginListing();
  EXPECT_TRUE(filter.IsNew(1, 100)) << "came back";
  EXPECT_EQ(filter.EndListing(), (std::vector<std::uint32_t>{2}));
}

TEST(RowFilter, ABrokenListingLosesNothing) {
  RowFilter filter;
  filter.BeginListing();
  EXPECT_TRUE(filter.IsNew(1, 100));
  EXPECT_TRUE(filter.IsNew(2, 200));
  (void)filter.EndListing();
  filter.BeginListing();
  EXPECT_FALSE(filter.IsNew(1, 100));  // and here slurmctld died: no EndListing
  filter.BeginListing();
  EXPECT_FALSE(filter.IsNew(1, 100));
  EXPECT_FALSE(filter.IsNew(2, 200));
  EXPECT_TRUE(filter.EndListing().empty());
}

TEST(RowFilter, OffersAgainWhatWasNotTaken) {
  RowFilter filter;
  filter.BeginListing();
  EXPECT_TRUE(filter.IsNew(1, 100));
  filter.NotTaken(1);
  EXPECT_TRUE(filter.EndListing().empty());
  filter.BeginListing();
  EXPECT_TRUE(filter.IsNew(1, 100));
}

}  // namespace
}  // namespace expanse::schedulers::slurm
