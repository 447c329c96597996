// gzip and zstd over whole buffers, with a bound on what may come out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::base {

// At most 4 GiB: more is a bug of the caller.
std::string GzipCompress(std::string_view data, int level = 6);
std::string ZstdCompress(std::string_view data, int level = 3);

// Fail with compress.corrupt on bytes that are not one whole stream, compress.too_large as soon as
// the output passes `limit` (a decompression bomb never fills memory).
Result<std::string> GzipDecompress(std::string_view data, std::size_t limit);
Result<std::string> ZstdDecompress(std::string_view data, std::size_t limit);

}  // namespace expanse::base
