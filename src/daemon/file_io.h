// The few file operations through which the outbox changes the disk, so that tests can fail or kill
// at every one of them. Reading goes past this: it cannot lose anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"

namespace expanse::daemon {

// Thread-safe. Errors are os.* (base::ErrnoError).
class FileIo {
 public:
  virtual ~FileIo() = default;
  // A new file with mode 0600; fails with os.EEXIST when there is one.
  virtual base::Result<base::UniqueFd> Create(const std::string& path) = 0;
  virtual base::Status Write(int fd, std::string_view data, std::int64_t offset) = 0;
  virtual base::Status Sync(int fd) = 0;
  virtual base::Status Truncate(const std::string& path, std::int64_t size) = 0;
  virtual base::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual base::Status Remove(const std::string& path) = 0;
  virtual base::Status SyncDirectory(const std::string& path) = 0;
};

class SystemFileIo final : public FileIo {
 public:
  base::Result<base::UniqueFd> Create(const std::string& path) override;
  base::Status Write(int fd, std::string_view data, std::int64_t offset) override;
  base::Status Sync(int fd) override;
  base::Status Truncate(const std::string& path, std::int64_t size) override;
  base::Status Rename(const std::string& from, const std::string& to) override;
  base::Status Remove(const std::string& path) override;
  base::Status SyncDirectory(const std::string& path) override;
};

// Replaces `directory`/`name` in one step, durably; the temporary file is `name`.tmp beside it. One
// writer at a time.
base::Status ReplaceFile(FileIo& files, const std::string& directory, std::string_view name,
                         std::string_view data);

}  // namespace expanse::daemon
