// One nvidia-smi that keeps writing: started, listened to, replaced when it dies or hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/retry.h"
#include "base/subprocess.h"
#include "base/time.h"
#include "collect/gpu/smi_csv.h"

namespace expanse::collect {

// Not thread-safe (a thread of its own reads the program's output). Never blocks but in Stop.
class SmiStream {
 public:
  struct Options {
    std::string program;                   // absolute path of nvidia-smi
    std::vector<std::string> environment;  // of the program
    std::string query;                     // "query-gpu" or "query-compute-apps"
    std::vector<std::string> fields;       // those that this version does not know are dropped
    std::chrono::seconds period{10};
    std::chrono::seconds silence_allowed{
        0};  // hangs when it writes nothing for longer; 0: may be silent
    base::BackoffPolicy backoff{std::chrono::seconds(5), std::chrono::minutes(5)};
  };
  explicit SmiStream(Options options);
  ~SmiStream() { Stop(); }
  SmiStream(const SmiStream&) = delete;
  SmiStream& operator=(const SmiStream&) = delete;

  // What was written since the last call. Starts or restarts the program when that is due.
  std::vector<SmiLine> Poll(base::MonoTime now);
  // Ends the program; five seconds at most.
  void Stop();

  // Has written its header and runs.
  bool healthy() const { return header_seen_ && process_ != nullptr; }
  // Why it last ended or could not be started: the driver's words, else how it ended. Empty: no
  // trouble.
  const SmiNotice& trouble() const { return trouble_; }
  int starts() const { return starts_; }
  const std::vector<std::string>& fields() const { return options_.fields; }

 private:
  // Written by the reader's thread; shared, because a stream that is being retired outlives its
  // use.
  struct Lines {
    std::mutex mutex;  // guards all below
    std::deque<std::string> waiting;
    std::uint64_t dropped = 0;
  };
  void StartProcess(base::MonoTime now);
  void NoteEnd(base::MonoTime now, SmiNotice notice);
  void Retire();
  bool DropField(const std::string& field);

  Options options_;
  base::Backoff backoff_;
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
  std::unique_ptr<base::LineProcess> process_;
  std::jthread retiring_;  // ends a hanging program without holding us up
  SmiCsvParser parser_;
  SmiNotice complaint_;  // what this run has said before it ended
  SmiNotice trouble_;
  bool header_seen_ = false;
  base::MonoTime last_line_{};
  base::MonoTime next_start_{};
  int starts_ = 0;
};

}  // namespace expanse::collect
