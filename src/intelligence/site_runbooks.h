// The runbooks of the program with those of a site's own directory over them, read again whenever
// its files change. What cannot be used as a whole leaves the last good ones in force, and is said:
// in the log, in a metric and wherever runbooks are listed.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "intelligence/runbook_source.h"

namespace expanse::intelligence {

// Current is thread-safe; Start and Stop belong to the thread that wires, Reload to one at a time.
class SiteRunbooks final : public RunbookSource {
 public:
  static constexpr std::size_t kMostFiles = 256;  // *.yaml, but for names that begin with a dot
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;  // of all together

  // Reads `directory`; empty: there are only the program's runbooks. A directory that cannot be
  // used does not keep a server from starting. Fails as EmbeddedRunbooks::Create.
  static base::Result<std::unique_ptr<SiteRunbooks>> Create(std::string directory,
                                                            std::chrono::milliseconds poll,
                                                            base::Clock& clock,
                                                            base::MetricRegistry& metrics);
  ~SiteRunbooks() override { Stop(); }

  Runbooks Current() override;

  // Looks for changes from now on, every `poll`.
  void Start();
  void Stop();
  // Looks now. True: the files have changed since the last look, for better or worse.
  bool Reload();

 private:
  struct Listing {
    std::vector<std::string> paths;
    std::string stamps;  // changes when a file does
  };

  SiteRunbooks(std::string directory, std::chrono::milliseconds poll, base::Clock& clock,
               base::MetricRegistry& metrics, Runbooks embedded);
  base::Result<Listing> Look() const;
  base::Result<Runbooks> Read(const Listing& files) const;

  const std::string directory_;
  const std::chrono::milliseconds poll_;
  base::Clock& clock_;
  base::Counter& failures_;
  base::Gauge& in_force_;
  const Runbooks embedded_;
  std::optional<std::string> seen_;  // stamps, or what was wrong, at the last look
  std::mutex mutex_;                 // guards current_
  Runbooks current_;
  std::jthread thread_;
};

}  // namespace expanse::intelligence
