// The embedded blob store: one file per blob under a directory,
//   sha256/ab/cdef…   the blob whose digest is abcdef…
//   tmp/              files being written; renamed into place once they are on disk
// A file's modification time is when its blob was last put.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/blobs/blob_store.h"

namespace expanse::store {

// Thread-safe. Several processes may put and get in one directory; only one may sweep it.
class DirectoryBlobStore final : public BlobStore {
 public:
  // Makes the directory where it is missing (mode 0700) and removes what a crash left in tmp/ over
  // an hour ago. `clock` outlives the store.
  static base::Result<std::unique_ptr<DirectoryBlobStore>> Open(const std::string& path,
                                                                base::Clock& clock);

  // Besides what BlobStore says, Put fails with blob.too_large (256 MiB) and store.disk_full.
  base::Result<std::string> Put(std::string_view data) override;
  base::Result<std::string> Get(std::string_view name) override;
  base::Result<std::size_t> Sweep(base::WallTime before,
                                  const std::function<bool(std::string_view)>& referenced) override;

 private:
  DirectoryBlobStore(std::string path, base::Clock& clock)
      : path_(std::move(path)), clock_(clock) {}

  std::string PathOf(std::string_view digest) const;
  base::Status CleanTmp();
  // Makes a blob that is there already as young as a new one. False when it is missing or damaged.
  base::Result<bool> Refresh(const std::string& path, std::string_view data);
  base::Status Write(const std::string& path, const std::string& directory, std::string_view data);
  base::Result<bool> RemoveIfOld(const std::string& path, base::WallTime before);

  const std::string path_;
  base::Clock& clock_;
  // Between a look at a file's age and its removal no Put may call the same file young. Held over a
  // few calls on one directory entry, never while bytes are written.
  std::mutex entries_;
};

}  // namespace expanse::store
