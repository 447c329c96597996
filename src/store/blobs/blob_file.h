// How a blob lies in a file: a head, then the bytes, compressed where that helps. The format is
// docs/formats/blob-file.md. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::store::blobs {

inline constexpr std::size_t kMaxBlobBytes = 256U << 20;

std::string EncodeBlobFile(std::string_view data);
// Fails with blob.corrupt on a damaged head or body. Whether the bytes are the right ones only
// their digest says.
base::Result<std::string> DecodeBlobFile(std::string_view file);

}  // namespace expanse::store::blobs
