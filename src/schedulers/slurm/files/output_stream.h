// One output file of a job: where it is, how far it was looked at, and what is wrong with it.
// Not thread-safe; reads with the rights that the calling thread has.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "collect/files/user_files.h"
#include "collect/logs/file_tail.h"
#include "evidence/records.h"

namespace expanse::schedulers::slurm {

enum class StreamTrouble : std::uint8_t {
  kNone,
  kNotFound,
  kNoPermission,
  kNotRegular,
  kLink,
  kUnreadable,
  kNoRights,     // the daemon may not take its user's rights
  kUnknownUser,  // this host does not know its user
};

class OutputStream {
 public:
  // `name`: "stdout", "stderr" or "combined", a literal. Not followed without a path.
  explicit OutputStream(const char* name) : name_(name) {}

  void SetName(const char* name) { name_ = name; }
  // Begins anew if it is another one. /dev/null is none.
  void SetPath(std::string_view path);
  void Close() { SetPath({}); }
  const std::string& path() const { return path_; }
  bool followed() const { return !path_.empty(); }

  // The first time: leaves out what was in the file before `started`.
  void Begin(const collect::FileOpener& open, base::WallTime started);
  // A tail if there is news. key is the caller's to set.
  std::optional<evidence::LogTail> Look(const collect::FileOpener& open,
                                        const collect::FileTailOptions& options, bool final);
  // Neither could be tried.
  void Fail(StreamTrouble trouble);

  // The look failed in a way that may pass in a moment (the file was being replaced).
  bool transient() const { return transient_; }
  bool grew() const { return grew_; }  // at the last look
  // For people: "stderr: not found here"; nothing as long as all is well. What is said stays in the
  // record, so a file that is not there is no news until it is `final`, nor is what else may pass.
  std::optional<std::string> Note(bool final) const;
  StreamTrouble trouble() const { return trouble_; }

 private:
  void SetTrouble(const base::Error& error);

  const char* name_;
  std::string path_;
  collect::FileTailState state_;
  StreamTrouble trouble_ = StreamTrouble::kNone;
  std::uint8_t failures_ = 0;  // looks in a row
  bool transient_ = false;
  bool grew_ = false;
};

}  // namespace expanse::schedulers::slurm
