#include "base/compress.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <limits>
#include <memory>

namespace expanse::base {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib: 16 added selects the gzip wrapper
constexpr std::size_t kChunk = 64U << 10;
constexpr int kMaxZstdWindowLog = 27;  // 128 MiB, zstd's own default for decoders

std::unexpected<Error> Corrupt(std::string_view format) {
  return Fail(Code::kInvalidArgument, "compress.corrupt",
              fmt::format("the bytes are not a complete {} stream", format));
}

std::unexpected<Error> TooLarge(std::size_t limit) {
  return Fail(Code::kResourceExhausted, "compress.too_large",
              fmt::format("the data would be larger than {} bytes when decompressed", limit));
}

}  // namespace

std::string GzipCompress(std::string_view data, int level) {
  EXPANSE_CHECK(data.size() <= std::numeric_limits<uInt>::max());
  z_stream stream{};
  EXPANSE_CHECK(deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) ==
                Z_OK);
  std::string out(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPANSE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string ZstdCompress(std::string_view data, int level) {
  std::string out(ZSTD_compressBound(data.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), data.data(), data.size(), level);
  EXPANSE_CHECK(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

Result<std::string> GzipDecompress(std::string_view data, std::size_t limit) {
  if (data.size() > std::numeric_limits<uInt>::max()) return TooLarge(limit);
  z_stream stream{};
  EXPANSE_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_streamp)> guard(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  std::string out;
  while (true) {
    const std::size_t used = out.size();
    out.resize(used + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = kChunk;
    const int status = inflate(&stream, Z_NO_FLUSH);
    out.resize(used + kChunk - stream.avail_out);
    if (out.size() > limit) return TooLarge(limit);
    if (status == Z_STREAM_END) {
      if (stream.avail_in != 0) return Corrupt("gzip");
      return out;
    }
    if (status != Z_OK || (stream.avail_in == 0 && stream.avail_out != 0)) return Corrupt("gzip");
  }
}

Result<std::string> ZstdDecompress(std::string_view data, std::size_t limit) {
  const std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                             ZSTD_freeDStream);
  EXPANSE_CHECK(stream != nullptr);
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, kMaxZstdWindowLog);
  ZSTD_inBuffer input{data.data(), data.size(), 0};
  std::string out;
  std::size_t hint = 1;
  while (input.pos < input.size || hint != 0) {
    const std::size_t used = out.size();
    out.resize(used + kChunk);
    ZSTD_outBuffer output{out.data() + used, kChunk, 0};
    hint = ZSTD_decompressStream(stream.get(), &output, &input);
    out.resize(used + output.pos);
    if (ZSTD_isError(hint)) return Corrupt("zstd");
    if (out.size() > limit) return TooLarge(limit);
    // No input left and the buffer not filled: nothing more can come.
    if (input.pos == input.size && output.pos < kChunk && hint != 0) return Corrupt("zstd");
    if (hint == 0 && input.pos == input.size) break;
  }
  return out;
}

}  // namespace expanse::base
