// Source bundles of jobs. The tasks of an array have the same script, command and directory: their
// files are read once and not a thousand times.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "base/time.h"
#include "collect/sources/source_bundle.h"
#include "evidence/records.h"
#include "schedulers/slurm/files/script_pool.h"

namespace expanse::schedulers::slurm {

// What decides which files a job's bundle has.
struct SourceJob {
  uid_t uid = 0;
  std::string working_directory;
  std::string command;        // as the scheduler writes it
  ScriptText script;          // null: no batch script, or unknown
  std::string script_sha256;  // see JobFilesRequest
};

struct CachedBundle {
  std::shared_ptr<const evidence::SourceBundle> bundle;  // its key is not set
  std::string hash;
  std::size_t bytes = 0;
  std::string first_of;  // identity of the execution it was read for
  bool repeated = false;
};

// Not thread-safe. Bounded in number, bytes and age: sources change.
class SourceCache {
 public:
  explicit SourceCache(collect::SourceLimits limits) : limits_(limits) {}

  // The bundle of `job`, read now unless it was read lately. The calling thread has the rights of
  // the job's user, and `open` is how it opens files. `identity` is the execution's.
  CachedBundle Take(const SourceJob& job, const std::string& identity,
                    const collect::FileOpener& open, base::MonoTime now);

 private:
  struct Entry {
    CachedBundle bundle;
    base::MonoTime read_at{};
  };
  void DropOldest();

  static constexpr std::chrono::minutes kMaxAge{10};
  static constexpr std::size_t kMaxEntries = 256;
  static constexpr std::size_t kMaxBytes = 8U << 20;

  const collect::SourceLimits limits_;
  std::map<std::string, Entry> entries_;  // by hash of the SourceJob
  std::deque<std::string> order_;         // oldest first
  std::size_t bytes_ = 0;
};

}  // namespace expanse::schedulers::slurm
