// Diagnoses failed executions before anybody asks: follows the change feed, waits a little for the
// last of the evidence, and keeps each diagnosis as a run of the system with its label. Looks again
// twice, as output and samples may come after the end; what has not changed makes no new run.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "intelligence/diagnoser.h"
#include "intelligence/options.h"
#include "store/records/evidence_store.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence {

// Start and Stop belong to the thread that wires; Notify is thread-safe. Holds references. Works on
// threads of its own, so that nobody who waits for an answer waits for it; while callers wait for a
// thread, it stands back. Queue and place in the feed are in the run store: a crash loses nothing,
// and an execution whose diagnosis was begun kMostTries times without an end is left alone.
class AutomaticDiagnosis {
 public:
  struct Parts {
    store::RunStore& runs;
    store::EvidenceStore& records;
    Diagnoser& diagnoser;
    base::Clock& clock;
    base::MetricRegistry& metrics;
  };
  static constexpr std::uint32_t kMostTries = 3;
  // Executions that wait; with more, the feed is read on later.
  static constexpr std::size_t kMostWaiting = 10'000;
  // When is looked again, after the last change of the execution.
  static constexpr std::array<std::chrono::seconds, 2> kLooks = {std::chrono::seconds(30),
                                                                 std::chrono::minutes(6)};

  // `callers_wait`: whether somebody waits for a thread.
  AutomaticDiagnosis(const IntelligenceOptions& options, const Parts& parts,
                     std::function<bool()> callers_wait);
  ~AutomaticDiagnosis() { Stop(); }

  // Begins, where the options say so.
  void Start();
  // Returns once the diagnoses at work are done. Idempotent.
  void Stop();
  // There may be something new: looks now instead of at the next poll. Does not block.
  void Notify();

  // The next page of the feed; false: there was nothing new, or too much waits.
  base::Result<bool> Follow();
  // Diagnoses what has been due for longest; false: nothing is due.
  base::Result<bool> WorkOne();

 private:
  base::Result<std::vector<store::DiagnosisChange>> ChangesOf(
      const std::vector<store::ChangedExecution>& page, base::WallTime now);
  // How an attempt ended, as it is counted. Fails as Diagnoser and the stores do.
  base::Result<std::string_view> Diagnose(const store::DueDiagnosis& due);
  base::Status EndTry(const store::DueDiagnosis& due, const base::Result<std::string_view>& end);
  void Count(std::string_view result);
  void FollowForEver(const std::stop_token& stop);
  void WorkForEver(const std::stop_token& stop);
  // Until `counter` is no longer `seen`, or the poll's time has passed.
  void Wait(const std::stop_token& stop, const std::uint64_t& counter, std::uint64_t seen);
  std::uint64_t Read(const std::uint64_t& counter);
  void Bump(std::uint64_t& counter);

  const IntelligenceOptions options_;
  const Parts parts_;
  const std::function<bool()> callers_wait_;
  base::Gauge& waiting_;
  base::Counter& failures_;
  std::mutex mutex_;  // guards both counters
  std::condition_variable_any changed_;
  std::uint64_t notified_ = 0;
  std::uint64_t followed_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace expanse::intelligence
