// Faults for the tests of stores: a process killed at any moment, a disk that is full.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <random>

#include "base/files.h"
#include "base/result.h"

namespace expanse::store {

// A directory for a store, in memory where the machine has such a file system: these tests commit
// thousands of times and check what a store does, not how fast a disk is. Created before threads.
base::Result<base::TempDir> StoreDirectory();

// In a child process: calls `write(n)` for n = first, first + 1, … until it is killed (SIGKILL) at
// a random moment after a random number of acknowledgements. Returns the last n whose write had
// returned when the child died. Fails if the child ended by itself. The caller has no other
// threads.
base::Result<std::uint64_t> WriteUntilKilled(
    std::uint64_t first, std::mt19937_64& random,
    const std::function<base::Status(std::uint64_t)>& write);

// While it lives no file of this process can grow beyond `bytes`: to a store that is a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uint64_t bytes);
  ~FileSizeLimit();
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  struct rlimit old_{};
  void (*handler_)(int);
};

}  // namespace expanse::store
