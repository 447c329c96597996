// What may be captured of jobs' files, as the daemon's settings say.
#pragma once

#include "base/settings.h"
#include "schedulers/slurm/files/capture_choice.h"

namespace expanse::daemon {

inline schedulers::slurm::CaptureSwitches CaptureSwitchesFrom(const base::Settings& settings) {
  return {.logs = settings.GetBool("capture.logs"),
          .sources = settings.GetBool("capture.sources"),
          .exclude_accounts = settings.GetList("capture.exclude_accounts"),
          .exclude_users = settings.GetList("capture.exclude_users")};
}

}  // namespace expanse::daemon
