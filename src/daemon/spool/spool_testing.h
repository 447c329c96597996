// Records as samplers send them and a file server that hangs, for tests of both ends of the spool.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/result.h"
#include "base/time.h"
#include "daemon/file_io.h"
#include "evidence/records.h"

namespace expanse::daemon::spool {

// Job `id` was seen to run.
evidence::Payload EventOfJob(const std::string& id);
// `points` of one series of job `id`, a second apart.
evidence::SampleBatch SamplesOfJob(const std::string& id, std::size_t points, base::WallTime from);
// The same, of values that do not compress.
evidence::SampleBatch NoiseOfJob(const std::string& id, std::size_t points, base::WallTime from);

// A file server that does not answer: making and removing files below a directory waits until it is
// let go.
class HangingFileIo final : public FileIo {
 public:
  explicit HangingFileIo(std::string below) : below_(std::move(below)) {}
  void LetGo() {
    {
      std::scoped_lock lock(mutex_);
      hanging_ = false;
    }
    changed_.notify_all();
  }
  bool WaitUntilInside() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [this] { return inside_ > 0; });
  }
  base::Result<base::UniqueFd> Create(const std::string& path) override {
    Pass(path);
    return real_.Create(path);
  }
  base::Status Write(int fd, std::string_view data, std::int64_t offset) override {
    return real_.Write(fd, data, offset);
  }
  base::Status Sync(int fd) override { return real_.Sync(fd); }
  base::Status Truncate(const std::string& path, std::int64_t size) override {
    return real_.Truncate(path, size);
  }
  base::Status Rename(const std::string& from, const std::string& to) override {
    return real_.Rename(from, to);
  }
  base::Status Remove(const std::string& path) override {
    Pass(path);
    return real_.Remove(path);
  }
  base::Status SyncDirectory(const std::string& path) override { return real_.SyncDirectory(path); }

 private:
  void Pass(const std::string& path) {
    std::unique_lock lock(mutex_);
    if (!path.starts_with(below_) || !hanging_) return;
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hanging_; });
    --inside_;
  }
  const std::string below_;
  SystemFileIo real_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool hanging_ = true;
  int inside_ = 0;
};

}  // namespace expanse::daemon::spool
