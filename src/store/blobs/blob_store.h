// Immutable bytes by content: log tails, source files, trace segments.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace expanse::store {

// Thread-safe. Every backend passes blob_store_contract.h.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Stores `data` and returns its name, "sha256:<64 hex digits>". Durable on return. Storing the
  // same bytes again is cheap, harmless and makes the blob as young as a new one.
  virtual base::Result<std::string> Put(std::string_view data) = 0;
  // Fails with blob.not_found, or blob.corrupt when the bytes no longer match their name.
  virtual base::Result<std::string> Get(std::string_view name) = 0;
  // Removes blobs for which `referenced` is false and that were put before `before` (so that a blob
  // whose record is still being written stays). Returns how many were removed.
  virtual base::Result<std::size_t> Sweep(
      base::WallTime before, const std::function<bool(std::string_view)>& referenced) = 0;
};

}  // namespace expanse::store
