// Tells both planes that the daemon is alive and how it is, and writes the same to health.json.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "daemon/session.h"
#include "evidence/records.h"

namespace expanse::daemon {

struct HeartbeatOptions {
  std::string daemon_version;
  std::string node;
  std::string health_path;                     // empty: no file
  std::chrono::milliseconds interval{30'000};  // until a plane asks for another
  std::chrono::milliseconds timeout{10'000};
};

// Not thread-safe; the heartbeat thread owns it.
class Heartbeats {
 public:
  // `rows` gathers the health rows of all parts; called once per beat. `report` is called after
  // each beat and tells the planes what else there is, newest only; it must end in time by itself.
  Heartbeats(Session& session, base::Clock& clock, HeartbeatOptions options,
             std::function<std::vector<evidence::HealthRow>()> rows,
             std::function<void()> report = {});

  // One beat to each plane. Returns how long to wait for the next.
  std::chrono::milliseconds Beat();
  void Run(std::stop_token stop);

 private:
  base::Status BeatControl();
  base::Status ReportToData(const std::vector<evidence::HealthRow>& rows);
  void Note(const char* plane, const base::Status& status, std::string* error);
  void WriteFile(const std::vector<evidence::HealthRow>& rows);

  Session& session_;
  base::Clock& clock_;
  const HeartbeatOptions options_;
  const std::function<std::vector<evidence::HealthRow>()> rows_;
  const std::function<void()> report_;
  const base::WallTime started_at_;
  const std::string boot_id_;
  std::chrono::milliseconds control_interval_;
  std::chrono::milliseconds data_interval_;
  std::string control_error_;
  std::string data_error_;
  base::RateLimit file_log_{std::chrono::seconds(60)};
};

}  // namespace expanse::daemon
