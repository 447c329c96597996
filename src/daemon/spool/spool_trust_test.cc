// Who and what the controller believes of what lies in the spool.
#include "daemon/spool/spool_drain_testing.h"

namespace expanse::daemon::spool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BadSegment {
 public:
  std::string reason;  // "": it is no segment and is left alone
  std::function<void(const std::string& path)> spoil;
};

void Rewrite(const std::string& path, const std::function<void(std::string*)>& change) {
  std::string bytes = *base::ReadFile(path);
  change(&bytes);
  ASSERT_TRUE(base::WriteFileAtomically(path, bytes, 0600));
}

// A segment as a sampler of `host` writes it, with these records.
std::string SegmentBytes(const std::string& path, const std::string& host,
                         const std::vector<std::string>& events) {
  const SegmentName name = *ParseSegmentName(std::string_view(path).substr(path.rfind('/') + 1));
  SegmentEncoder encoder;
  std::string bytes = SegmentEncoder::Begin(
      {.stream_id = name.stream_id, .sequence = name.sequence, .begun = {}, .host = host},
      &encoder);
  encoder.AppendBlock(BlockKind::kEvents, events, &bytes);
  encoder.AppendTrailer({}, &bytes);
  return bytes;
}

std::string EncodedEvent(const std::string& identity) {
  evidence::Payload event = EventOfJob("1");
  std::get<evidence::ExecutionObservation>(event).key.identity = identity;
  return evidence::Encode({.sequence = 1,
                           .observed_at = base::FromMicros(1'800'000'000'000'000),
                           .payload = std::move(event)});
}

TEST_F(SpoolDrainTest, WhatIsTornForgedOrNoFileGoesToQuarantineAndHarmsNobody) {
  const std::string secret = temp_.path() + "/secret";
  ASSERT_TRUE(base::WriteFileAtomically(secret, "not for the spool", 0600));
  auto replace = [](const std::string& bytes) {
    return [bytes](const std::string& path) {
      ASSERT_TRUE(base::WriteFileAtomically(path, bytes, 0600));
    };
  };
  const std::vector<BadSegment> cases = {
      {"torn", [](const std::string& p) { Rewrite(p, [](auto* b) { b->resize(b->size() - 1); }); }},
      {"torn", replace("")},
      {"corrupt", replace("something else entirely, and long enough to hold a header ......")},
      {"corrupt", [](const std::string& p) { Rewrite(p, [](auto* b) { (*b)[100] ^= 1; }); }},
      {"version", [](const std::string& p) { Rewrite(p, [](auto* b) { (*b)[8] = 9; }); }},
      {"forged",
       [&](const std::string& p) {
         replace(SegmentBytes(p, "node2", {EncodedEvent("job:7")}))(p);
       }},
      {"forged",
       [&](const std::string& p) {
         replace(SegmentBytes(p, "node1", {EncodedEvent("lab/7@1")}))(p);
       }},
      {"forged",
       [&](const std::string& p) {
         replace(SegmentBytes(p, "node1", {EncodedEvent("job:07")}))(p);
       }},
      {"malformed",
       [&](const std::string& p) { replace(SegmentBytes(p, "node1", {"no record"}))(p); }},
      {"forged",
       [&](const std::string& p) {
         ASSERT_EQ(::unlink(p.c_str()), 0);
         ASSERT_EQ(::symlink(secret.c_str(), p.c_str()), 0);
       }},
      {"forged",
       [&](const std::string& p) {
         ASSERT_EQ(::unlink(p.c_str()), 0);
         ASSERT_EQ(::mkfifo(p.c_str(), 0600), 0);
       }},
      {"forged",
       [&](const std::string& p) { ASSERT_EQ(::link(p.c_str(), (p + ".other").c_str()), 0); }},
      {"forged", [](const std::string& p) { ASSERT_EQ(::chmod(p.c_str(), 0666), 0); }},
      {"too_large",
       [](const std::string& p) {
         ASSERT_EQ(::truncate(p.c_str(), std::int64_t(kMaxSegmentFile) + 1), 0);
       }},
      {"forged",
       [](const std::string& p) {  // under another's name
         ASSERT_EQ(::rename(p.c_str(), (p.substr(0, p.size() - 7) + "9.e.seg").c_str()), 0);
       }},
      {"forged",
       [](const std::string& p) {  // events that claim to be samples alone
         ASSERT_EQ(::rename(p.c_str(), (p.substr(0, p.size() - 5) + "s.seg").c_str()), 0);
       }},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(base::RemoveTree(Spool()));
    ASSERT_TRUE(base::MakeDirectories(Spool()));
    Restart();
    auto bad = Sampler("node1");
    auto good = Sampler("node2");
    ASSERT_TRUE(bad->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*bad);
    cases[i].spoil(OnlySegment());
    ASSERT_TRUE(bad->Emit(EventOfJob("8"), clock_.Now()));
    ASSERT_TRUE(good->Emit(EventOfJob("9"), clock_.Now()));
    Ship(*bad);
    Ship(*good);
    for (int look = 0; look < 5; ++look) Step();
    EXPECT_THAT(Executions(), testing::UnorderedElementsAre("lab/8@1", "lab/9@1"));
    ASSERT_EQ(Quarantined().size(), 1U);
    EXPECT_THAT(Quarantined()[0], testing::StartsWith("node1." + cases[i].reason + "."));
    EXPECT_EQ(Figure("quarantined_" + cases[i].reason), 1);
    EXPECT_EQ(Row().reason, "spool.quarantined");
    EXPECT_THAT(Row().message, HasSubstr("node1"));
    EXPECT_EQ(*base::ReadFile(secret), "not for the spool");
  }
}

TEST_F(SpoolDrainTest, OtherNamesAreLeftAloneAndADirectoryIsNotLookedAtForEver) {
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  const std::string segment = OnlySegment();
  ASSERT_EQ(::unlink(segment.c_str()), 0);
  ASSERT_TRUE(base::MakeDirectories(segment + "/inside"));
  for (const char* name : {"a\nb", ".x.tmp", "readme", "..seg"})
    ASSERT_TRUE(base::WriteFileAtomically(Spool() + "/node1/" + name, "x", 0600));
  ASSERT_TRUE(base::MakeDirectories(Spool() + "/bad name"));
  ASSERT_TRUE(base::WriteFileAtomically(Spool() + "/file", "x", 0600));
  ASSERT_EQ(::symlink("/etc", (Spool() + "/link").c_str()), 0);
  for (int i = 0; i < 4; ++i) Step();
  EXPECT_EQ(Figure("strange"), 3);
  EXPECT_EQ(Segments().size(), 4U);
  EXPECT_EQ(Quarantined().size(), 1U) << "moved as it is, nothing in it read";
}

TEST_F(SpoolDrainTest, QuarantineIsBounded) {
  auto sampler = Sampler();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*sampler);
  }
  for (const std::string& name : Segments())
    ASSERT_TRUE(base::WriteFileAtomically(Spool() + "/node1/" + name, std::string(100, 'x'), 0600));
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_EQ(Quarantined().size(), 4U);
  EXPECT_TRUE(Segments().empty());
  EXPECT_EQ(Figure("quarantined_corrupt"), 10);
  // Also over restarts.
  Restart();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  ASSERT_TRUE(base::WriteFileAtomically(OnlySegment(), std::string(100, 'x'), 0600));
  Step();
  EXPECT_EQ(Quarantined().size(), 4U);
}

TEST_F(SpoolDrainTest, DirectoriesThatOthersMayWriteToAreNotRead) {
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  ASSERT_EQ(::chmod((Spool() + "/node1").c_str(), 0777), 0);
  Step();
  EXPECT_TRUE(Executions().empty());
  EXPECT_EQ(Row().reason, "spool.untrusted");
  ASSERT_EQ(::chmod((Spool() + "/node1").c_str(), 0700), 0);
  Step();
  EXPECT_EQ(Executions().size(), 1U);
  ASSERT_EQ(::chmod(Spool().c_str(), 0777), 0);
  Restart();
  Step();
  EXPECT_EQ(Row().reason, "spool.untrusted");
  ASSERT_EQ(::chmod(Spool().c_str(), 01777), 0);
  Step();
  EXPECT_EQ(Row().reason, "") << "sticky: nobody can replace another's directory";
}

TEST_F(SpoolDrainTest, ForeignOwnersAreNotBelievedUnlessNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  auto sampler = Sampler();
  auto ship = [&] {
    ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
    Ship(*sampler);
  };
  ship();
  ASSERT_EQ(::chown(OnlySegment().c_str(), 65534, 65534), 0);
  Step();
  ASSERT_EQ(Quarantined().size(), 1U) << "another's file in root's directory";
  ASSERT_EQ(::chown((Spool() + "/node1").c_str(), 65534, 65534), 0);
  ship();
  Step();
  EXPECT_TRUE(Executions().empty());
  EXPECT_EQ(Figure("untrusted"), 1);
  // Root on a node is nobody behind root_squash.
  SpoolDrainOptions options = Options();
  options.worker.reader.owners = {65534};
  drain_ = std::make_unique<SpoolDrain>(options, resolver_, *outboxes_, files_, clock_);
  Step();
  EXPECT_EQ(Executions().size(), 1U);
}

TEST_F(SpoolDrainTest, AMissingSpoolIsHealthAndIsFoundAgain) {
  ASSERT_TRUE(base::RemoveTree(Spool()));
  Step();
  EXPECT_EQ(Row().reason, "spool.missing");
  ASSERT_TRUE(base::MakeDirectories(Spool()));
  auto sampler = Sampler();
  ASSERT_TRUE(sampler->Emit(EventOfJob("7"), clock_.Now()));
  Ship(*sampler);
  Step();
  EXPECT_EQ(Row().reason, "");
  EXPECT_EQ(Executions().size(), 1U);
  // Another file system is mounted over it.
  ASSERT_EQ(::rename(Spool().c_str(), (Spool() + "-before").c_str()), 0);
  ASSERT_TRUE(base::MakeDirectories(Spool()));
  ASSERT_TRUE(sampler->Emit(EventOfJob("8"), clock_.Now()));
  Ship(*sampler);
  Step();
  EXPECT_EQ(Executions().size(), 1U);
}

}  // namespace
}  // namespace expanse::daemon::spool
