#include "intelligence/history/fingerprint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "intelligence/history/shingles.h"

namespace expanse::intelligence::history {
namespace {

Fingerprint Of(std::vector<SourceText> files, std::size_t entry = 0) {
  return MakeFingerprint(files, entry);
}
SourceText Script(std::string_view data) {
  return {.path = "job.sh", .role = "script", .data = data};
}
SourceText Import(std::string_view path, std::string_view data) {
  return {.path = path, .role = "import", .data = data};
}

constexpr std::string_view kJob =
    "#!/bin/bash\n#SBATCH --mem=4G\nsrun python train.py --epochs 10 --lr 3e-4\n";

TEST(Fingerprint, OfTheSameSourceHasTheSameKey) {
  const Fingerprint a = Of({Script(kJob), Import("train.py", "import torch\nprint(1)\n")});
  const Fingerprint b = Of({Import("/home/x/train.py", "import torch # c\r\n\r\nprint(1)"),
                            {.path = "/var/spool/job",
                             .role = "script",
                             .data = "#!/bin/bash\n#SBATCH --mem=64G --time=3\n\nsrun -n 4 python "
                                     "train.py --epochs 10 --lr 3e-4\n"}},
                           1);
  EXPECT_FALSE(a.bundle_key.empty());
  EXPECT_EQ(a.bundle_key, b.bundle_key) << "order, folders, comments and requests do not matter";
  EXPECT_EQ(Similarity(a.signature, b.signature), 1);
  EXPECT_NE(a.files[0].content_hash, b.files[1].content_hash);
  EXPECT_EQ(a.files[0].normalised_hash, b.files[1].normalised_hash);
  const Fingerprint c = Of({Script(kJob), Import("train.py", "import torch\nprint(2)\n")});
  EXPECT_NE(a.bundle_key, c.bundle_key);
}

TEST(Fingerprint, WhatIsNoSourceDoesNotCount) {
  const Fingerprint bare = Of({Script(kJob)});
  const Fingerprint with = Of({Script(kJob),
                               {.path = "points.csv", .role = "argument", .data = "1,2\n3,4\n"},
                               Import("__init__.py", "# nothing\n")});
  EXPECT_EQ(bare.bundle_key, with.bundle_key);
  EXPECT_EQ(bare.signature, with.signature);
  EXPECT_FALSE(with.files[1].is_source);
  EXPECT_EQ(with.files[2].normalised_hash, "");
  const Fingerprint unknown = Of({{.path = "run", .role = "argument", .data = "do it\n"}});
  EXPECT_TRUE(unknown.files[0].is_source) << "what was submitted always counts";
  EXPECT_FALSE(unknown.bundle_key.empty());
}

TEST(Fingerprint, OfVeryMuchIsBounded) {
  std::string much;
  for (int i = 0; much.size() < (5U << 18); ++i) much += "a" + std::to_string(i) + " b\n";
  const Fingerprint print = Of({Script(much)});
  const Fingerprint more = Of({Script(much + "end\n")});
  EXPECT_EQ(print.signature, more.signature);
  EXPECT_NE(print.bundle_key, more.bundle_key);
}

TEST(Fingerprint, OfNothingIsEmpty) {
  EXPECT_EQ(Of({}).bundle_key, "");
  EXPECT_TRUE(Of({}).signature.empty());
  const Fingerprint blank = Of({Script("# only\n\n")});
  EXPECT_EQ(blank.bundle_key, "");
  EXPECT_EQ(Similarity(blank.signature, blank.signature), 0);
}

TEST(Fingerprint, MasksNumbersThatStandByThemselves) {
  const auto script = [](const char* text) { return Of({Script(text)}); };
  const Fingerprint ten =
      script("train.py --epochs 10 --lr 3e-4 --size=16G v2 llama-3.1-8b a.5 1.2.3\n");
  EXPECT_EQ(ten.numbers, (std::vector<double>{10, 3e-4}));
  const Fingerprint twenty =
      script("train.py --epochs 20 --lr 3e-4 --size=16G v2 llama-3.1-8b a.5 1.2.3\n");
  EXPECT_EQ(ten.shape_hash, twenty.shape_hash);
  EXPECT_NE(ten.bundle_key, twenty.bundle_key);
  EXPECT_NE(
      ten.shape_hash,
      script("train.py --epochs 10 --lr 3e-4 --size=32G v2 llama-3.1-8b a.5 1.2.3\n").shape_hash);
  std::string many = "x";
  for (int i = 0; i < 100; ++i) many += " " + std::to_string(i);
  const Fingerprint bounded = Of({Script(many)});
  EXPECT_EQ(bounded.numbers.size(), kMaxNumbers);
  EXPECT_NE(bounded.shape_hash, Of({Script(many + "1")}).shape_hash)
      << "those beyond are compared as text";
}

TEST(Fingerprint, SimilarityEstimatesTheShareOfCommonShingles) {
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "step" + std::to_string(i) + " = f(" + std::to_string(i) + ")\n";
  ShingleSet whole;
  whole.Add(text);
  const auto all = whole.Take();
  for (const double share : {0.25, 0.5, 0.75, 0.9}) {
    ShingleSet part;
    part.Add(text.substr(0, static_cast<std::size_t>(share * static_cast<double>(text.size()))));
    const auto some = part.Take();
    const double exact = Jaccard(all, some);
    EXPECT_NEAR(exact, share, 0.03);
    EXPECT_NEAR(Similarity(MinHash(all), MinHash(some)), exact, 0.15) << "3.4 standard errors";
    EXPECT_NEAR(Similarity(MinHash(all, 4096), MinHash(some, 4096)), exact, 0.03);
  }
  ShingleSet other;
  other.Add("entirely different words stand in this text of no relation");
  EXPECT_LT(Similarity(MinHash(all), MinHash(other.Take())), 0.05);
}

TEST(ArgumentsPrint, LeavesOutOutputAndMasksNumbers) {
  const auto of = [](std::vector<std::string> words) { return MakeArgumentsPrint(words); };
  EXPECT_EQ(of({"--n", "5", "--output-dir", "run1"}), of({"--n", "5", "--output-dir=run2"}));
  EXPECT_NE(of({"--n", "5"}).hash, of({"--n", "6"}).hash);
  EXPECT_EQ(of({"--n", "5"}).shape, of({"--n", "6"}).shape);
  EXPECT_EQ(of({"--n", "5"}).numbers, std::vector<double>{5});
  EXPECT_NE(of({"a b"}).hash, of({"a", "b"}).hash);
  EXPECT_EQ(of({}).hash, of({"--out", "x"}).hash);
}

}  // namespace
}  // namespace expanse::intelligence::history
