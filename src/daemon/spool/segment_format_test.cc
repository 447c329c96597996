#include "daemon/spool/segment_format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/compress.h"
#include "base/crypto.h"

namespace expanse::daemon::spool {
namespace {

using namespace std::chrono_literals;

constexpr const char* kStream = "0190a2b4-0000-7000-8000-00000000abcd";

SegmentHeader Header() {
  return {.stream_id = kStream,
          .sequence = 7,
          .begun = {.wall = base::FromMicros(1'800'000'000'000'000), .mono = base::MonoTime(5s)},
          .host = "node07"};
}
const ClockReading kHandedOver{.wall = base::FromMicros(1'800'000'010'000'000),
                               .mono = base::MonoTime(15s)};

// Header, a block of samples, one of events, a status, trailer; `ends` gets the end of each piece.
std::string Sample(std::vector<std::size_t>* ends = nullptr) {
  SegmentEncoder encoder;
  std::string bytes = SegmentEncoder::Begin(Header(), &encoder);
  auto mark = [&] {
    if (ends != nullptr) ends->push_back(bytes.size());
  };
  mark();
  encoder.AppendBlock(BlockKind::kSamples, {"one", std::string(5000, 'x')}, &bytes);
  mark();
  encoder.AppendBlock(BlockKind::kEvents, {"an event"}, &bytes);
  mark();
  encoder.AppendBlock(BlockKind::kStatus, {"fine"}, &bytes);
  mark();
  encoder.AppendTrailer(kHandedOver, &bytes);
  return bytes;
}

std::string ReasonOf(std::string_view bytes) {
  const auto segment = DecodeSegment(bytes);
  return segment ? "" : segment.error().reason;
}

TEST(SegmentFormat, GivesBackWhatWasWritten) {
  const auto segment = DecodeSegment(Sample());
  ASSERT_TRUE(segment) << segment.error().message;
  EXPECT_EQ(segment->header.stream_id, kStream);
  EXPECT_EQ(segment->header.sequence, 7U);
  EXPECT_EQ(segment->header.host, "node07");
  EXPECT_EQ(segment->header.begun, Header().begun);
  EXPECT_EQ(segment->handed_over, kHandedOver);
  EXPECT_EQ(segment->samples, (std::vector<std::string>{"one", std::string(5000, 'x')}));
  EXPECT_EQ(segment->events, std::vector<std::string>{"an event"});
  EXPECT_EQ(segment->status, "fine");
}

// The layout is a contract between versions: a header as the document describes it, by hand.
TEST(SegmentFormat, HeaderIsLaidOutAsDocumented) {
  const std::string bytes = Sample();
  EXPECT_EQ(bytes.substr(0, 8), "XPNSSPL\n");
  EXPECT_EQ(bytes.substr(8, 8), std::string("\x01\0\0\0\x06\0\0\0", 8));
  EXPECT_EQ(base::HexEncode(bytes.substr(16, 16)), "0190a2b400007000800000000000abcd");
  EXPECT_EQ(bytes.substr(32, 8), std::string("\x07\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(56, 6), "node07");
  EXPECT_EQ(bytes.substr(66, 4), "\xf5XS1");
  EXPECT_EQ(bytes.substr(bytes.size() - 36, 8), "XPNSEND\n");
}

TEST(SegmentFormat, AnyCutIsTorn) {
  const std::string bytes = Sample();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_EQ(ReasonOf(bytes.substr(0, size)), "spool.torn") << size;
}

TEST(SegmentFormat, AnyFlippedByteIsNoticed) {
  const std::string bytes = Sample();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    ASSERT_FALSE(DecodeSegment(damaged)) << at;
  }
}

TEST(SegmentFormat, MissingDoubledAndSwappedBlocksAreNoticed) {
  std::vector<std::size_t> ends;
  const std::string bytes = Sample(&ends);
  const std::string head = bytes.substr(0, ends[0]);
  const std::string first = bytes.substr(ends[0], ends[1] - ends[0]);
  const std::string second = bytes.substr(ends[1], ends[2] - ends[1]);
  const std::string rest = bytes.substr(ends[2]);
  EXPECT_EQ(ReasonOf(head + first + second + rest), "");
  EXPECT_EQ(ReasonOf(head + first + rest), "spool.corrupt");
  EXPECT_EQ(ReasonOf(head + second + first + rest), "spool.corrupt");
  EXPECT_EQ(ReasonOf(head + first + first + second + rest), "spool.corrupt");
  EXPECT_EQ(ReasonOf(bytes + "x"), "spool.corrupt");
}

TEST(SegmentFormat, ANewerVersionIsSaidToBeOne) {
  std::string bytes = Sample();
  bytes[8] = 2;
  EXPECT_EQ(ReasonOf(bytes), "spool.version");
}

// Writes one block by hand, with true checksums over false figures.
std::string Forged(std::uint32_t records, std::uint32_t unpacked, const std::string& payload) {
  SegmentEncoder encoder;
  std::string bytes = SegmentEncoder::Begin(Header(), &encoder);
  std::uint32_t chain = 0;
  std::memcpy(&chain, bytes.data() + bytes.size() - 4, 4);
  auto put = [](std::string* out, std::uint32_t value) {
    out->append(reinterpret_cast<const char*>(&value), 4);
  };
  std::string header = "\xf5XS1";
  put(&header, 1);
  put(&header, records);
  put(&header, unpacked);
  put(&header, static_cast<std::uint32_t>(payload.size()));
  put(&header, base::Crc32c(payload));
  put(&header, base::Crc32c(header, chain));
  return bytes + header + payload;
}

TEST(SegmentFormat, BombsAreNotUnpacked) {
  const std::string zeros = base::ZstdCompress(std::string(200U << 20, '\0'));
  EXPECT_EQ(ReasonOf(Forged(1, 200U << 20, zeros)), "spool.too_large");
  EXPECT_EQ(ReasonOf(Forged(1, 1000, zeros)), "spool.corrupt") << "more than was said";
  EXPECT_EQ(ReasonOf(Forged(1'000'000, 4'000'000, base::ZstdCompress(std::string(4'000'000, 0)))),
            "spool.too_large")
      << "a million empty records";
  EXPECT_EQ(ReasonOf(Forged(5, 16, base::ZstdCompress(std::string(16, 0)))), "spool.corrupt");
  EXPECT_EQ(ReasonOf(std::string(kMaxSegmentFile + 1, 'x')), "spool.too_large");
}

TEST(SegmentFormat, RecordLengthsThatLeadOutsideAreNoticed) {
  std::string record("\xff\xff\0\0abcdefgh", 12);
  EXPECT_EQ(ReasonOf(Forged(1, 12, base::ZstdCompress(record))), "spool.corrupt");
  record = std::string("\x04\0\0\0abcdefgh", 12);
  EXPECT_EQ(ReasonOf(Forged(1, 12, base::ZstdCompress(record))), "spool.corrupt");
}

TEST(SegmentFormat, APrefixGoesUpToTheLastWholeBlockAndCanBeGoneOnWith) {
  std::vector<std::size_t> ends;
  const std::string bytes = Sample(&ends);
  for (std::size_t size = ends[0]; size < ends[3]; ++size) {
    const auto prefix = ReadPrefix(std::string_view(bytes).substr(0, size));
    ASSERT_TRUE(prefix);
    const std::size_t blocks = size >= ends[2] ? 2 : size >= ends[1] ? 1 : 0;
    ASSERT_EQ(prefix->size, ends[blocks]) << size;
    EXPECT_EQ(prefix->events, blocks == 2);
    EXPECT_EQ(prefix->records, blocks == 2 ? 3U : blocks == 1 ? 2U : 0U);
    SegmentEncoder encoder = prefix->encoder;
    std::string repaired = bytes.substr(0, prefix->size);
    encoder.AppendBlock(BlockKind::kEvents, {"later"}, &repaired);
    encoder.AppendTrailer(kHandedOver, &repaired);
    const auto segment = DecodeSegment(repaired);
    ASSERT_TRUE(segment) << size;
    EXPECT_EQ(segment->events.back(), "later");
  }
  EXPECT_FALSE(ReadPrefix(bytes.substr(0, ends[0] - 1)));
  EXPECT_FALSE(ReadPrefix(""));
}

TEST(SegmentName, IsReadOnlyInItsOneSpelling) {
  const SegmentName name{.stream_id = kStream, .sequence = 42, .events = true};
  const std::string text = FormatSegmentName(name);
  EXPECT_EQ(text, std::string(kStream) + "-0000000000000042.e.seg");
  EXPECT_EQ(ParseSegmentName(text), name);
  for (const std::string& bad :
       {std::string(), "../" + text.substr(3), text + "\n", "." + text, text.substr(1),
        std::string(kStream) + "-0000000000000000.e.seg", std::string(kStream) + "-42.e.seg",
        std::string(kStream) + "-00000000000000x2.e.seg",
        std::string(kStream) + "-0000000000000042.x.seg",
        std::string("0190A2B4-0000-7000-8000-00000000ABCD-0000000000000042.e.seg")}) {
    EXPECT_FALSE(ParseSegmentName(bad)) << bad;
  }
}

TEST(SegmentName, HostsHavePlainNames) {
  for (const char* good : {"node1", "gpu-07.cluster.example", "A_b"}) EXPECT_TRUE(IsHostName(good));
  for (const char* bad : {"", ".", "..", ".hidden", "-rf", "a/b", "a\nb", "a b", "n\xc3\xb6"})
    EXPECT_FALSE(IsHostName(bad)) << bad;
  EXPECT_FALSE(IsHostName(std::string(254, 'a')));
  EXPECT_FALSE(IsHostName(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace expanse::daemon::spool
