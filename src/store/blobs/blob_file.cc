#include "store/blobs/blob_file.h"

#include <cstdint>

#include "base/compress.h"

namespace expanse::store::blobs {
namespace {

constexpr std::string_view kMagic = "XBLB";
constexpr char kVersion = 1;
constexpr char kPlain = 0;
constexpr char kZstd = 1;
constexpr std::size_t kHeadBytes = 16;  // magic, version, encoding, two zero bytes, length
constexpr std::size_t kLengthAt = 8;
constexpr std::size_t kMinCompress = 256;  // below it a file takes one disk block either way

std::unexpected<base::Error> Corrupt(const char* what) {
  return base::Fail(base::Code::kDataLoss, "blob.corrupt",
                    std::string("the blob's file is damaged: ") + what);
}

}  // namespace

std::string EncodeBlobFile(std::string_view data) {
  std::string compressed;
  if (data.size() >= kMinCompress) compressed = base::ZstdCompress(data);
  const bool smaller =
      data.size() >= kMinCompress && compressed.size() < data.size() - data.size() / 8;
  std::string file(kMagic);
  file += kVersion;
  file += smaller ? kZstd : kPlain;
  file.append(2, '\0');
  for (int shift = 0; shift < 64; shift += 8)
    file += static_cast<char>(std::uint64_t{data.size()} >> shift);
  file += smaller ? std::string_view(compressed) : data;
  return file;
}

base::Result<std::string> DecodeBlobFile(std::string_view file) {
  if (file.size() < kHeadBytes || !file.starts_with(kMagic)) return Corrupt("head");
  if (file[4] != kVersion || file[6] != 0 || file[7] != 0) return Corrupt("version");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(file[kLengthAt + i]))
              << (8 * i);
  }
  if (length > kMaxBlobBytes) return Corrupt("length");
  const std::string_view body = file.substr(kHeadBytes);
  if (file[5] == kPlain) {
    if (body.size() != length) return Corrupt("length");
    return std::string(body);
  }
  if (file[5] != kZstd) return Corrupt("encoding");
  auto data = base::ZstdDecompress(body, length);
  if (!data || data->size() != length) return Corrupt("compression");
  return data;
}

}  // namespace expanse::store::blobs
