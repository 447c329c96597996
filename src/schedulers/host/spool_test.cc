#include "schedulers/host/spool.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"

namespace expanse::schedulers::host {
namespace {

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};

SpoolEvent StartEvent(const std::string& run_id) {
  evidence::Execution execution;
  execution.source_type = evidence::SourceType::kHost;
  execution.native_id = "run-abc";
  execution.name = "na\xffme";
  execution.command = {"prog", "\x80\x01", "", "b c"};
  execution.started_at = kNow;
  SpoolEvent event;
  event.kind = SpoolKind::kStart;
  event.run_id = run_id;
  event.root = {42, 12345678901ULL};
  event.runner = {41, 12345678900ULL};
  event.cgroups = {"/sys/fs/cgroup/memory/x"};
  event.records.push_back({.sequence = 1,
                           .observed_at = kNow,
                           .payload = evidence::ExecutionObservation{
                               {evidence::SourceType::kHost, run_id}, execution}});
  return event;
}

class SpoolTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::chmod(dir_.path().c_str(), 0700), 0); }
  std::string Path(const std::string& name) const { return base::JoinPath(dir_.path(), name); }
  std::string Reason(const std::string& name) {
    const auto read = SpoolReader::Open(dir_.path()).value().Read(name, kNow);
    return read ? "ok" : read.error().reason;
  }
  base::TempDir dir_ = base::TempDir::Create("spool").value();
  std::string run_id_ = base::NewUuid(kNow);
  std::string start_ = SpoolFileName(run_id_, SpoolKind::kStart);
};

TEST_F(SpoolTest, GivesBackWhatWasWritten) {
  SpoolWriter writer(dir_.path(), "");
  const SpoolEvent event = StartEvent(run_id_);
  ASSERT_TRUE(writer.Write(event, /*durable=*/true));
  auto reader = SpoolReader::Open(dir_.path()).value();
  std::vector<std::string> strange;
  ASSERT_EQ(reader.List(strange).value(), (std::vector<std::string>{start_}));
  EXPECT_TRUE(strange.empty());
  const auto read = reader.Read(start_, kNow).value();
  EXPECT_EQ(read.owner, ::geteuid());
  EXPECT_EQ(read.event.root, event.root);
  EXPECT_EQ(read.event.runner, event.runner);
  EXPECT_EQ(read.event.cgroups, event.cgroups);
  ASSERT_EQ(read.event.records.size(), 1U);
  const auto& execution =
      std::get<evidence::ExecutionObservation>(read.event.records[0].payload).execution;
  EXPECT_EQ(execution.name, "na\xffme");
  EXPECT_EQ(execution.command, (std::vector<std::string>{"prog", "\x80\x01", "", "b c"}));
  reader.Remove(start_, read.inode + 1);
  EXPECT_TRUE(base::Exists(Path(start_)));
  reader.Remove(start_, read.inode);
  EXPECT_FALSE(base::Exists(Path(start_)));
}

TEST_F(SpoolTest, RefusesEveryTornFile) {
  const std::string whole = EncodeSpoolEvent(StartEvent(run_id_));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeSpoolEvent(std::string_view(whole).substr(0, size), kNow)) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at == 6 || at == 7) continue;  // reserved
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    EXPECT_FALSE(DecodeSpoolEvent(bad, kNow)) << at;
  }
  EXPECT_FALSE(DecodeSpoolEvent(whole + "x", kNow));
}

TEST_F(SpoolTest, RefusesRecordsThatItsKindDoesNotCarry) {
  SpoolEvent event = StartEvent(run_id_);
  event.kind = SpoolKind::kTail;
  EXPECT_EQ(DecodeSpoolEvent(EncodeSpoolEvent(event), kNow).error().reason, "spool.malformed");
}

TEST_F(SpoolTest, RefusesTimesFarOff) {
  EXPECT_FALSE(
      DecodeSpoolEvent(EncodeSpoolEvent(StartEvent(run_id_)), kNow - std::chrono::hours(48)));
}

TEST_F(SpoolTest, RefusesForgedFiles) {
  const std::string data = EncodeSpoolEvent(StartEvent(run_id_));
  ASSERT_TRUE(base::WriteFileAtomically(Path("real"), data, 0600));
  ASSERT_EQ(::symlink("real", Path(start_).c_str()), 0);
  EXPECT_EQ(Reason(start_), "spool.forged");
  ::unlink(Path(start_).c_str());

  ASSERT_EQ(::link(Path("real").c_str(), Path(start_).c_str()), 0);
  EXPECT_EQ(Reason(start_), "spool.forged");
  ::unlink(Path(start_).c_str());

  ASSERT_EQ(::mkfifo(Path(start_).c_str(), 0600), 0);
  EXPECT_EQ(Reason(start_), "spool.forged");
  ::unlink(Path(start_).c_str());

  ASSERT_TRUE(base::WriteFileAtomically(Path(start_), data, 0666));
  ASSERT_EQ(::chmod(Path(start_).c_str(), 0666), 0);
  EXPECT_EQ(Reason(start_), "spool.forged");
  ::unlink(Path(start_).c_str());

  const std::string other = SpoolFileName(base::NewUuid(kNow), SpoolKind::kStart);
  ASSERT_TRUE(base::WriteFileAtomically(Path(other), data, 0600));
  EXPECT_EQ(Reason(other), "spool.forged");

  ASSERT_TRUE(base::WriteFileAtomically(Path(start_), std::string(kMaxSpoolEvent + 1, 'x'), 0600));
  EXPECT_EQ(Reason(start_), "spool.too_large");
}

TEST_F(SpoolTest, BelievesTheOwnerOfAFileOnlyInADropBox) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  ASSERT_TRUE(base::WriteFileAtomically(Path(start_), EncodeSpoolEvent(StartEvent(run_id_)), 0600));
  ASSERT_EQ(::chown(Path(start_).c_str(), 12345, 12345), 0);
  EXPECT_EQ(Reason(start_), "spool.forged");
  ASSERT_EQ(::chmod(dir_.path().c_str(), 01733), 0);
  EXPECT_EQ(SpoolReader::Open(dir_.path()).value().Read(start_, kNow).value().owner, 12345U);
}

TEST_F(SpoolTest, TrustsNoDirectoryThatOthersMayChange) {
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0777), 0);
  EXPECT_EQ(SpoolReader::Open(dir_.path()).error().reason, "spool.untrusted");
  EXPECT_EQ(SpoolReader::Open(Path("absent")).error().reason, "spool.missing");
}

TEST_F(SpoolTest, QuarantinesUpToItsLimit) {
  const std::string quarantine = Path("q");
  ASSERT_EQ(::mkdir(quarantine.c_str(), 0700), 0);
  auto reader = SpoolReader::Open(dir_.path()).value();
  for (int i = 0; i < 5; ++i) {
    const std::string name = "bad" + std::to_string(i);
    ASSERT_TRUE(base::WriteFileAtomically(Path(name), "x", 0600));
    reader.Quarantine(name, quarantine, 3);
    EXPECT_FALSE(base::Exists(Path(name)));
  }
  EXPECT_EQ(base::ListDirectory(quarantine).value().size(), 3U);
}

TEST_F(SpoolTest, FallsBackAndMovesOnLater) {
  const std::string shared = Path("shared");
  const std::string fallback = Path("home/spool");
  {
    SpoolWriter writer(shared, fallback);
    ASSERT_TRUE(writer.Write(StartEvent(run_id_), /*durable=*/false));
    EXPECT_FALSE(writer.trouble().empty());
    EXPECT_EQ(writer.MoveLeftovers(10), 0U);
  }
  EXPECT_TRUE(base::Exists(base::JoinPath(fallback, start_)));
  ASSERT_EQ(::mkdir(shared.c_str(), 0700), 0);
  SpoolWriter writer(shared, fallback);
  EXPECT_EQ(writer.MoveLeftovers(10), 1U);
  EXPECT_TRUE(SpoolReader::Open(shared).value().Read(start_, kNow).has_value());
  EXPECT_FALSE(base::Exists(base::JoinPath(fallback, start_)));
}

TEST_F(SpoolTest, KeepsTheDirectoryWhenOneEventIsTooLarge) {
  const std::string shared = Path("shared");
  ASSERT_EQ(::mkdir(shared.c_str(), 0700), 0);
  SpoolWriter writer(shared, Path("home/spool"));
  SpoolEvent large = StartEvent(run_id_);
  large.cgroups = {"/" + std::string(kMaxSpoolEvent, 'x')};
  EXPECT_EQ(writer.Write(large, /*durable=*/false).error().reason, "spool.too_large");
  EXPECT_EQ(writer.trouble(), "");
  EXPECT_TRUE(writer.Write(StartEvent(run_id_), /*durable=*/false));
  EXPECT_TRUE(base::Exists(base::JoinPath(shared, start_)));
}

TEST_F(SpoolTest, MovesOnWhatTheDaemonOfAnotherUserCanRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  const std::string shared = Path("shared");
  const std::string fallback = Path("home/spool");
  ASSERT_TRUE(SpoolWriter("/proc/nowhere", fallback).Write(StartEvent(run_id_), /*durable=*/false));
  ASSERT_EQ(::mkdir(shared.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(shared.c_str(), 01733), 0);
  ASSERT_EQ(::chown(shared.c_str(), 1234, 1234), 0);
  EXPECT_EQ(SpoolWriter(shared, fallback).MoveLeftovers(10), 1U);
  struct stat info{};
  ASSERT_EQ(::stat(base::JoinPath(shared, start_).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644U);
}

TEST_F(SpoolTest, SaysWhenNothingTakesIt) {
  SpoolWriter writer("/proc/nowhere", "/proc/nowhere/else");
  EXPECT_FALSE(writer.Write(StartEvent(run_id_), /*durable=*/false));
}

TEST_F(SpoolTest, SweepsTemporaryFilesOfTheDead) {
  ASSERT_TRUE(base::WriteFileAtomically(Path(".x.1-start.77"), "x", 0600));
  auto reader = SpoolReader::Open(dir_.path()).value();
  std::vector<std::string> strange;
  ASSERT_TRUE(reader.List(strange));
  reader.SweepTemporary(strange, reader.ModifiedAt().value(), std::chrono::hours(1));
  EXPECT_TRUE(base::Exists(Path(".x.1-start.77")));
  reader.SweepTemporary(strange, reader.ModifiedAt().value() + std::chrono::hours(2),
                        std::chrono::hours(1));
  EXPECT_FALSE(base::Exists(Path(".x.1-start.77")));
}

}  // namespace
}  // namespace expanse::schedulers::host
