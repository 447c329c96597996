// <state_dir>/health.json: what the daemon last knew of itself, for `expanse-daemon healthcheck`.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "evidence/records.h"

namespace expanse::daemon {

struct HealthSnapshot {
  std::string boot_id;  // with `mono`, an age that no change of the wall clock falsifies
  base::MonoTime mono{};
  base::WallTime written_at{};
  int pid = 0;
  std::string daemon_version;
  std::string node;
  std::string compute_id;
  std::string control_error;  // of the last heartbeat; empty: it was accepted
  std::string data_error;
  std::vector<evidence::HealthRow> rows;
};

std::string FormatHealth(const HealthSnapshot& snapshot);
// Fails with health.syntax.
base::Result<HealthSnapshot> ParseHealth(std::string_view json);

struct HealthVerdict {
  bool healthy = false;
  std::string line;  // one line, for people
};

// Unhealthy: older than `max_age`, from before the last boot, a part of the daemon stalled, the
// credential revoked. A plane that is away or a collector without its source is not: a restart
// would not help, and evidence is kept.
HealthVerdict JudgeHealth(const HealthSnapshot& snapshot, std::string_view boot_id,
                          base::MonoTime now, std::chrono::milliseconds max_age);

// Reads the file and judges it; a missing or damaged file is unhealthy too.
HealthVerdict CheckHealthFile(const std::string& path, base::Clock& clock,
                              std::chrono::milliseconds max_age);

// The kernel's id of this boot, empty where it cannot be read.
std::string BootId();

}  // namespace expanse::daemon
