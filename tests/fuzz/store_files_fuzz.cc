// The bytes that stores read back from disk: series chunks and blob files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "store/blobs/blob_file.h"
#include "store/series/chunk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace expanse::store;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A chunk is checked by checksums, which a fuzzer does not guess: bodies are tried without.
  for (const bool whole : {true, false}) {
    const auto points = whole ? series::DecodeChunk(bytes) : series::DecodeSegmentBody(bytes);
    if (!points || points->empty()) continue;
    // What decodes encodes again to the same points.
    const auto again = series::DecodeChunk(series::PackChunk(*points));
    if (!again || again->times != points->times) std::abort();
  }
  if (bytes.size() < (1U << 16)) {
    const auto blob = blobs::DecodeBlobFile(bytes);
    if (blob && blobs::DecodeBlobFile(blobs::EncodeBlobFile(*blob)) != *blob) std::abort();
  }
  return 0;
}
