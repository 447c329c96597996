#include "daemon/spool/segment_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/compress.h"
#include "base/crypto.h"
#include "base/text.h"
#include "daemon/binary.h"

namespace expanse::daemon::spool {
namespace {

constexpr std::string_view kMagic = "XPNSSPL\n";
constexpr std::string_view kEndMagic = "XPNSEND\n";
constexpr std::string_view kBlockMarker = "\xf5XS1";
constexpr std::size_t kFixedHeader = 56;
constexpr std::size_t kBlockHeader = 28;
constexpr std::size_t kTrailer = 36;
constexpr std::size_t kUuidText = 36;
constexpr std::size_t kSequenceDigits = 16;
constexpr std::string_view kEventsSuffix = ".e.seg";
constexpr std::string_view kSamplesSuffix = ".s.seg";

void PutClock(const ClockReading& clock, std::string* out) {
  Put<std::int64_t>(out, base::ToMicros(clock.wall));
  Put<std::int64_t>(out, clock.mono.time_since_epoch().count());
}

// Far beyond what clocks show, and far from where arithmetic overflows.
constexpr std::int64_t kMaxWallMicros = 10'000'000'000'000'000;    // the year 2286
constexpr std::int64_t kMaxMonoNanos = 1'000'000'000'000'000'000;  // 31 years up

// Nothing for a time that no clock shows.
std::optional<ClockReading> GetClock(std::string_view bytes, std::size_t at) {
  const auto wall = Get<std::int64_t>(bytes, at);
  const auto mono = Get<std::int64_t>(bytes, at + 8);
  if (wall < 0 || wall > kMaxWallMicros || mono < 0 || mono > kMaxMonoNanos) return std::nullopt;
  return ClockReading{.wall = base::FromMicros(wall), .mono = base::MonoTime(base::Duration(mono))};
}

std::unexpected<base::Error> Torn(std::string_view what) {
  return base::Fail(base::Code::kDataLoss, "spool.torn", std::string(what));
}
std::unexpected<base::Error> Corrupt(std::string_view what) {
  return base::Fail(base::Code::kDataLoss, "spool.corrupt", std::string(what));
}
std::unexpected<base::Error> TooLarge(std::string_view what) {
  return base::Fail(base::Code::kResourceExhausted, "spool.too_large", std::string(what));
}

struct ReadHeader {
  SegmentHeader header;
  std::size_t size = 0;
  std::uint32_t chain = 0;
};

base::Result<ReadHeader> TakeHeader(std::string_view bytes) {
  if (bytes.size() < kFixedHeader) return Torn("the file ends in its header");
  if (!bytes.starts_with(kMagic)) return Corrupt("not a segment");
  if (const auto version = Get<std::uint32_t>(bytes, 8); version != kSegmentVersion) {
    return base::Fail(base::Code::kFailedPrecondition, "spool.version",
                      fmt::format("format version {} is not known here (this program knows {}); "
                                  "samplers must not be newer than the controller",
                                  version, kSegmentVersion));
  }
  const std::size_t host_size = Get<std::uint32_t>(bytes, 12);
  if (host_size == 0 || host_size > kMaxHostName) return Corrupt("the host's name has no length");
  const std::size_t size = kFixedHeader + host_size + 4;
  if (bytes.size() < size) return Torn("the file ends in its header");
  const auto checksum = Get<std::uint32_t>(bytes, size - 4);
  if (checksum != base::Crc32c(bytes.substr(0, size - 4)))
    return Corrupt("the header fails its checksum");
  const auto begun = GetClock(bytes, 40);
  if (!begun) return Corrupt("the header's clock shows no time");
  return ReadHeader{.header = {.stream_id = UuidText(bytes.substr(16, 16)),
                               .sequence = Get<std::uint64_t>(bytes, 32),
                               .begun = *begun,
                               .host = std::string(bytes.substr(kFixedHeader, host_size))},
                    .size = size,
                    .chain = checksum};
}

struct Block {
  BlockKind kind = BlockKind::kSamples;
  std::uint32_t records = 0;
  std::size_t unpacked = 0;
  std::string_view payload;
  std::size_t size = 0;
  std::uint32_t chain = 0;
};

// The block that `bytes` begins with; checksums hold, nothing is unpacked yet.
base::Result<Block> TakeBlock(std::string_view bytes, std::uint32_t chain) {
  if (bytes.size() < kBlockHeader) return Torn("the file ends in a block's header");
  if (!bytes.starts_with(kBlockMarker)) return Corrupt("no block where one should begin");
  const auto checksum = Get<std::uint32_t>(bytes, 24);
  if (checksum != base::Crc32c(bytes.substr(0, 24), chain))
    return Corrupt("a block's header fails its checksum");
  const auto kind = Get<std::uint32_t>(bytes, 4);
  if (kind < 1 || kind > 3) return Corrupt("a block of unknown kind");
  const std::size_t packed = Get<std::uint32_t>(bytes, 16);
  if (bytes.size() - kBlockHeader < packed) return Torn("the file ends in a block");
  Block block{.kind = static_cast<BlockKind>(kind),
              .records = Get<std::uint32_t>(bytes, 8),
              .unpacked = Get<std::uint32_t>(bytes, 12),
              .payload = bytes.substr(kBlockHeader, packed),
              .size = kBlockHeader + packed,
              .chain = checksum};
  if (Get<std::uint32_t>(bytes, 20) != base::Crc32c(block.payload))
    return Corrupt("a block fails its checksum");
  // A record takes at least its length: what does not add up is not unpacked.
  if (block.records == 0 || block.records > block.unpacked / 4)
    return Corrupt("a block's figures contradict each other");
  return block;
}

base::Status Unpack(const Block& block, std::vector<std::string>* out) {
  auto unpacked = base::ZstdDecompress(block.payload, block.unpacked);
  if (!unpacked || unpacked->size() != block.unpacked) return Corrupt("a block does not unpack");
  std::string_view rest = *unpacked;
  for (std::uint32_t i = 0; i < block.records; ++i) {
    if (rest.size() < 4) return Corrupt("a block ends too early");
    const std::size_t size = Get<std::uint32_t>(rest, 0);
    if (size > kMaxRecord) return TooLarge("a record is above its bound");
    if (size == 0) return Corrupt("a record without content");
    if (rest.size() - 4 < size) return Corrupt("a block ends too early");
    out->emplace_back(rest.substr(4, size));
    rest.remove_prefix(4 + size);
  }
  if (!rest.empty()) return Corrupt("a block goes on too long");
  return {};
}

base::Status CheckTrailer(std::string_view bytes, std::uint32_t chain, std::uint32_t blocks,
                          std::uint32_t records) {
  if (bytes.size() < kTrailer) return Torn("the file ends in its trailer");
  if (bytes.size() > kTrailer) return Corrupt("the file goes on after its trailer");
  if (Get<std::uint32_t>(bytes, 32) != base::Crc32c(bytes.substr(0, 32), chain))
    return Corrupt("the trailer fails its checksum");
  if (Get<std::uint32_t>(bytes, 8) != blocks || Get<std::uint32_t>(bytes, 12) != records)
    return Corrupt("blocks are missing");
  return {};
}

}  // namespace

std::string FormatSegmentName(const SegmentName& name) {
  return fmt::format("{}-{:016}{}", name.stream_id, name.sequence,
                     name.events ? kEventsSuffix : kSamplesSuffix);
}

std::optional<SegmentName> ParseSegmentName(std::string_view name) {
  if (name.size() != kUuidText + 1 + kSequenceDigits + kEventsSuffix.size()) return std::nullopt;
  const std::string_view stream = name.substr(0, kUuidText);
  const auto sequence = base::ParseUnsignedDigits(name.substr(kUuidText + 1, kSequenceDigits));
  const std::string_view suffix = name.substr(kUuidText + 1 + kSequenceDigits);
  if (!base::IsUuid(stream) || base::ToLower(stream) != stream || name[kUuidText] != '-' ||
      !sequence || *sequence == 0 || (suffix != kEventsSuffix && suffix != kSamplesSuffix)) {
    return std::nullopt;
  }
  return SegmentName{
      .stream_id = std::string(stream), .sequence = *sequence, .events = suffix == kEventsSuffix};
}

bool IsHostName(std::string_view name) {
  if (name.empty() || name.size() > kMaxHostName || name[0] == '.' || name[0] == '-') return false;
  return std::ranges::all_of(name, [](char c) {
    return base::IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::string SegmentEncoder::Begin(const SegmentHeader& header, SegmentEncoder* encoder) {
  EXPANSE_CHECK(!header.host.empty() && header.host.size() <= kMaxHostName);
  std::string out(kMagic);
  Put<std::uint32_t>(&out, kSegmentVersion);
  Put<std::uint32_t>(&out, static_cast<std::uint32_t>(header.host.size()));
  out += UuidBytes(header.stream_id);
  Put<std::uint64_t>(&out, header.sequence);
  PutClock(header.begun, &out);
  out += header.host;
  *encoder = {};
  encoder->chain_ = base::Crc32c(out);
  Put<std::uint32_t>(&out, encoder->chain_);
  return out;
}

void SegmentEncoder::AppendBlock(BlockKind kind, const std::vector<std::string>& records,
                                 std::string* out) {
  EXPANSE_CHECK(!records.empty());
  std::string unpacked;
  for (const std::string& record : records) {
    EXPANSE_CHECK(!record.empty() && record.size() <= kMaxRecord);
    Put<std::uint32_t>(&unpacked, static_cast<std::uint32_t>(record.size()));
    unpacked += record;
  }
  const std::string payload = base::ZstdCompress(unpacked);
  std::string header(kBlockMarker);
  Put<std::uint32_t>(&header, static_cast<std::uint32_t>(kind));
  Put<std::uint32_t>(&header, static_cast<std::uint32_t>(records.size()));
  Put<std::uint32_t>(&header, static_cast<std::uint32_t>(unpacked.size()));
  Put<std::uint32_t>(&header, static_cast<std::uint32_t>(payload.size()));
  Put<std::uint32_t>(&header, base::Crc32c(payload));
  chain_ = base::Crc32c(header, chain_);
  Put<std::uint32_t>(&header, chain_);
  ++blocks_;
  records_ += static_cast<std::uint32_t>(records.size());
  *out += header;
  *out += payload;
}

void SegmentEncoder::AppendTrailer(const ClockReading& handed_over, std::string* out) const {
  std::string trailer(kEndMagic);
  Put<std::uint32_t>(&trailer, blocks_);
  Put<std::uint32_t>(&trailer, records_);
  PutClock(handed_over, &trailer);
  Put<std::uint32_t>(&trailer, base::Crc32c(trailer, chain_));
  *out += trailer;
}

base::Result<SegmentPrefix> ReadPrefix(std::string_view bytes) {
  EXPANSE_ASSIGN_OR_RETURN(ReadHeader header, TakeHeader(bytes));
  SegmentPrefix prefix{.header = std::move(header.header), .encoder = {}, .size = header.size};
  prefix.encoder.chain_ = header.chain;
  while (const auto block = TakeBlock(bytes.substr(prefix.size), prefix.encoder.chain_)) {
    prefix.size += block->size;
    prefix.encoder.chain_ = block->chain;
    prefix.encoder.records_ += block->records;
    ++prefix.encoder.blocks_;
    if (block->kind == BlockKind::kStatus) continue;
    prefix.records += block->records;
    prefix.events = prefix.events || block->kind == BlockKind::kEvents;
  }
  return prefix;
}

base::Result<Segment> DecodeSegment(std::string_view bytes) {
  if (bytes.size() > kMaxSegmentFile) return TooLarge("the file is above its bound");
  EXPANSE_ASSIGN_OR_RETURN(ReadHeader header, TakeHeader(bytes));
  Segment segment{.header = std::move(header.header)};
  std::string_view rest = bytes.substr(header.size);
  std::uint32_t chain = header.chain;
  std::uint32_t blocks = 0;
  std::uint32_t records = 0;
  std::size_t unpacked = 0;
  while (!rest.starts_with(kEndMagic)) {
    EXPANSE_ASSIGN_OR_RETURN(const Block block, TakeBlock(rest, chain));
    unpacked += block.unpacked;
    if (unpacked > kMaxSegmentRecords || block.records > kMaxSegmentRecordCount - records)
      return TooLarge("its records are above their bound");
    std::vector<std::string> status;
    std::vector<std::string>* out = block.kind == BlockKind::kSamples  ? &segment.samples
                                    : block.kind == BlockKind::kEvents ? &segment.events
                                                                       : &status;
    EXPANSE_RETURN_IF_ERROR(Unpack(block, out));
    if (!status.empty()) segment.status = std::move(status.back());
    chain = block.chain;
    ++blocks;
    records += block.records;
    rest.remove_prefix(block.size);
  }
  EXPANSE_RETURN_IF_ERROR(CheckTrailer(rest, chain, blocks, records));
  const auto handed_over = GetClock(rest, 16);
  if (!handed_over) return Corrupt("the trailer's clock shows no time");
  segment.handed_over = *handed_over;
  return segment;
}

}  // namespace expanse::daemon::spool
