// Removes runs past their time and beyond their number, in the background and in short steps, so
// that nobody who asks waits.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>
#include <thread>

#include "base/metrics.h"
#include "base/time.h"
#include "intelligence/options.h"
#include "store/runs/run_store.h"

namespace expanse::intelligence {

// Start and Stop from one thread; RunOnce is thread-safe. Holds references.
class RunRetention {
 public:
  RunRetention(const IntelligenceOptions& options, store::RunStore& runs, base::Clock& clock,
               base::MetricRegistry& metrics);
  ~RunRetention() { Stop(); }

  // Runs a minute after the start and then every retention_interval.
  void Start();
  // Returns once the step at work is done. Idempotent.
  void Stop();
  void RunOnce(const std::stop_token& stop);

 private:
  void DropAll(const std::stop_token& stop, std::string_view what,
               const std::function<base::Result<std::size_t>()>& drop);

  const IntelligenceOptions& options_;
  store::RunStore& runs_;
  base::Clock& clock_;
  base::Counter& removed_;
  base::Counter& failures_;
  std::jthread thread_;
};

}  // namespace expanse::intelligence
