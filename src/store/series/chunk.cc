#include "store/series/chunk.h"

#include <zstd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/crypto.h"

namespace expanse::store::series {
namespace {

constexpr char kVersion = 1;
constexpr std::uint8_t kFlagZstd = 1;
constexpr std::size_t kMaxPayload = 2U << 20;  // a full segment in its worst encoding is 1.3 MB
constexpr int kZstdLevel = 1;
constexpr std::size_t kCrcBytes = 4;

// Value encodings. kXor: bits against the value before. kDecimal + d: integers at 10^d, as deltas.
constexpr std::uint8_t kXor = 0;
constexpr std::uint8_t kDecimal = 1;
constexpr std::array<double, 4> kPowers = {1, 10, 100, 1000};
constexpr double kMaxScaled = 9007199254740992.0;  // 2^53: above it integers are not exact

std::uint64_t ZigZag(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
std::int64_t UnZigZag(std::uint64_t v) {
  return static_cast<std::int64_t>((v >> 1) ^ (~(v & 1) + 1));
}

void PutVarint(std::uint64_t v, std::string* out) {
  while (v >= 0x80) {
    out->push_back(static_cast<char>(v | 0x80));
    v >>= 7;
  }
  out->push_back(static_cast<char>(v));
}

// Differences wrap around; the decoder's wrap gives the same numbers back.
std::int64_t Difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t Sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// Reads the parts of a segment; once something is missing, `ok` is false and all reads give 0.
struct Reader {
  const unsigned char* at;
  const unsigned char* end;
  bool ok = true;

  explicit Reader(std::string_view data)
      : at(reinterpret_cast<const unsigned char*>(data.data())), end(at + data.size()) {}

  std::size_t left() const { return static_cast<std::size_t>(end - at); }
  std::uint8_t Byte() {
    if (at == end) return static_cast<std::uint8_t>(ok = false);
    return *at++;
  }
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == end) break;
      const std::uint8_t byte = *at++;
      if (shift == 63 && byte > 1) break;  // more than 64 bits
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    ok = false;
    return 0;
  }
  std::string_view Take(std::size_t count) {
    if (count > left()) {
      ok = false;
      return {};
    }
    const std::string_view taken(reinterpret_cast<const char*>(at), count);
    at += count;
    return taken;
  }
};

// The smallest number of decimals at which every value is an integer, or -1. Checked by bits: what
// cannot be given back exactly (-0.0, infinities, 0.1 + 0.2) goes through kXor.
int CommonDecimals(const std::vector<double>& values) {
  for (std::size_t decimals = 0; decimals < kPowers.size(); ++decimals) {
    const double power = kPowers[decimals];
    bool all = true;
    for (double value : values) {
      const double scaled = std::nearbyint(value * power);
      if (!(std::fabs(scaled) < kMaxScaled) ||
          std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(scaled)) /
                                       power) != std::bit_cast<std::uint64_t>(value)) {
        all = false;
        break;
      }
    }
    if (all) return static_cast<int>(decimals);
  }
  return -1;
}

void PutTimes(const std::vector<std::int64_t>& times, std::string* out) {
  std::int64_t previous = 0;
  std::int64_t delta = 0;
  for (std::int64_t time : times) {
    const std::int64_t next = Difference(time, previous);
    PutVarint(ZigZag(Difference(next, delta)), out);
    delta = next;
    previous = time;
  }
}

void PutDecimals(const std::vector<double>& values, double power, std::string* out) {
  std::int64_t previous = 0;
  for (double value : values) {
    const auto scaled = static_cast<std::int64_t>(std::nearbyint(value * power));
    PutVarint(ZigZag(scaled - previous), out);
    previous = scaled;
  }
}

// One byte (leading zero bytes << 4 | significant bytes), then the significant bytes, high first.
void PutXor(const std::vector<double>& values, std::string* out) {
  std::uint64_t previous = 0;
  for (double value : values) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t x = bits ^ previous;
    previous = bits;
    if (x == 0) {
      out->push_back(0);
      continue;
    }
    const int leading = std::countl_zero(x) / 8;
    const int significant = 8 - leading - std::countr_zero(x) / 8;
    out->push_back(static_cast<char>(leading << 4 | significant));
    for (int i = 0; i < significant; ++i) {
      out->push_back(static_cast<char>(x >> (8 * (7 - leading - i))));
    }
  }
}

base::Error Corrupt(const char* what) {
  return {base::Code::kDataLoss, "series.corrupt", std::string("the chunk is damaged: ") + what};
}

void ReadTimes(Reader& in, std::size_t count, std::vector<std::int64_t>* out) {
  std::int64_t previous = out->empty() ? 0 : out->back();
  const bool follows = !out->empty();
  std::int64_t time = 0;
  std::int64_t delta = 0;
  for (std::size_t i = 0; i < count && in.ok; ++i) {
    delta = Sum(delta, UnZigZag(in.Varint()));
    time = Sum(time, delta);
    if ((i > 0 || follows) && time <= previous) in.ok = false;
    out->push_back(previous = time);
  }
}

void ReadValues(Reader& in, std::uint8_t encoding, std::size_t count, std::vector<double>* out) {
  if (encoding != kXor) {
    const double power = kPowers[encoding - kDecimal];
    std::int64_t scaled = 0;
    for (std::size_t i = 0; i < count && in.ok; ++i) {
      scaled = Sum(scaled, UnZigZag(in.Varint()));
      out->push_back(static_cast<double>(scaled) / power);
    }
    return;
  }
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count && in.ok; ++i) {
    const std::uint8_t control = in.Byte();
    const int leading = control >> 4;
    const int significant = control & 0x0F;
    if (leading + significant > 8) in.ok = false;
    for (int b = 0; b < significant && in.ok; ++b) {
      bits ^= static_cast<std::uint64_t>(in.Byte()) << (8 * (7 - leading - b));
    }
    out->push_back(std::bit_cast<double>(bits));
  }
}

base::Status DecodePayload(std::string_view payload, Points* out) {
  Reader in(payload);
  const std::uint64_t count = in.Varint();
  const std::uint8_t encoding = in.Byte();
  if (!in.ok || count == 0 || count + out->size() > kMaxChunkPoints)
    return std::unexpected(Corrupt("point count"));
  if (encoding >= kDecimal + kPowers.size()) return std::unexpected(Corrupt("value encoding"));
  if (count > in.left())
    return std::unexpected(Corrupt("length"));  // a point takes two bytes or more
  ReadTimes(in, count, &out->times);
  ReadValues(in, encoding, count, &out->values);
  if (!in.ok || in.left() != 0) return std::unexpected(Corrupt("columns"));
  return {};
}

base::Status DecodeBody(std::string_view body, Points* out) {
  Reader in(body);
  const std::uint8_t flags = in.Byte();
  if (flags == 0 && in.ok) return DecodePayload(body.substr(1), out);
  const std::uint64_t length = in.Varint();
  if (!in.ok || flags != kFlagZstd || length > kMaxPayload)
    return std::unexpected(Corrupt("segment head"));
  // Making a context costs more than a chunk; it holds no data between calls.
  thread_local const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(
      ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::string payload(length, '\0');
  const std::size_t got =
      ZSTD_decompressDCtx(context.get(), payload.data(), payload.size(), in.at, in.left());
  if (ZSTD_isError(got) || got != length) return std::unexpected(Corrupt("compression"));
  return DecodePayload(payload, out);
}

// The body of a segment: flags and payload, compressed where that saves an eighth or more.
std::string EncodeBody(const Points& points, bool pack) {
  std::string payload;
  payload.reserve(points.size() * 6 + 16);
  PutVarint(points.size(), &payload);
  const int decimals = CommonDecimals(points.values);
  payload.push_back(static_cast<char>(decimals < 0 ? kXor : kDecimal + decimals));
  PutTimes(points.times, &payload);
  if (decimals < 0) {
    PutXor(points.values, &payload);
  } else {
    PutDecimals(points.values, kPowers[static_cast<std::size_t>(decimals)], &payload);
  }
  if (pack) {
    std::string body(1, static_cast<char>(kFlagZstd));
    PutVarint(payload.size(), &body);
    const std::size_t head = body.size();
    body.resize(head + ZSTD_compressBound(payload.size()));
    thread_local const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(
        ZSTD_createCCtx(), ZSTD_freeCCtx);
    const std::size_t got = ZSTD_compressCCtx(context.get(), body.data() + head, body.size() - head,
                                              payload.data(), payload.size(), kZstdLevel);
    if (!ZSTD_isError(got) && head + got + payload.size() / 8 < payload.size()) {
      body.resize(head + got);
      return body;
    }
  }
  payload.insert(payload.begin(), '\0');
  return payload;
}

}  // namespace

Points Points::Slice(std::size_t from, std::size_t to) const {
  const auto begin = static_cast<std::ptrdiff_t>(from);
  const auto end = static_cast<std::ptrdiff_t>(to);
  return {{times.begin() + begin, times.begin() + end},
          {values.begin() + begin, values.begin() + end}};
}

std::string EmptyChunk() { return std::string(1, kVersion); }

std::string EncodeSegment(const Points& points, bool pack) {
  EXPANSE_CHECK(!points.empty() && points.size() <= kMaxChunkPoints);
  const std::string body = EncodeBody(points, pack);
  std::string segment;
  segment.reserve(body.size() + 8);
  PutVarint(body.size(), &segment);
  const std::uint32_t crc = base::Crc32c(body);
  for (int shift = 0; shift < 32; shift += 8) segment.push_back(static_cast<char>(crc >> shift));
  segment += body;
  return segment;
}

std::size_t CountSegments(std::string_view chunk) {
  Reader in(chunk.substr(chunk.empty() ? 0 : 1));
  std::size_t count = 0;
  for (; in.ok && in.left() > 0; ++count) {
    const std::uint64_t length = in.Varint();
    in.Take(kCrcBytes);
    in.Take(length);
  }
  return in.ok ? count : 0;
}

std::string PackChunk(const Points& points) {
  return EmptyChunk() + EncodeSegment(points, /*pack=*/true);
}

base::Result<Points> DecodeChunk(std::string_view chunk) {
  if (chunk.empty() || chunk[0] != kVersion) return std::unexpected(Corrupt("version"));
  Points points;
  Reader in(chunk.substr(1));
  while (in.left() > 0) {
    const std::uint64_t length = in.Varint();
    std::uint32_t crc = 0;
    for (int shift = 0; shift < 32; shift += 8)
      crc |= static_cast<std::uint32_t>(in.Byte()) << shift;
    const std::string_view body = in.Take(length);
    if (!in.ok) return std::unexpected(Corrupt("torn"));
    if (base::Crc32c(body) != crc) return std::unexpected(Corrupt("checksum"));
    EXPANSE_RETURN_IF_ERROR(DecodeBody(body, &points));
  }
  return points;
}

base::Result<Points> DecodeSegmentBody(std::string_view body) {
  Points points;
  EXPANSE_RETURN_IF_ERROR(DecodeBody(body, &points));
  return points;
}

Points MergePoints(const Points& older, const Points& newer) {
  Points merged;
  merged.times.reserve(older.size() + newer.size());
  merged.values.reserve(older.size() + newer.size());
  std::size_t a = 0;
  std::size_t b = 0;
  while (a < older.size() || b < newer.size()) {
    const bool take_newer =
        a == older.size() || (b < newer.size() && newer.times[b] <= older.times[a]);
    if (take_newer && a < older.size() && newer.times[b] == older.times[a]) ++a;
    const Points& from = take_newer ? newer : older;
    std::size_t& at = take_newer ? b : a;
    merged.times.push_back(from.times[at]);
    merged.values.push_back(from.values[at]);
    ++at;
  }
  return merged;
}

}  // namespace expanse::store::series
