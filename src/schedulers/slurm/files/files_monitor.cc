#include "schedulers/slurm/files/files_monitor.h"

namespace expanse::schedulers::slurm {

void FilesMonitor::Enter(std::string_view path, base::MonoTime now) {
  const std::scoped_lock lock(mutex_);
  path_ = path;
  since_ = now;
}

void FilesMonitor::Leave() {
  const std::scoped_lock lock(mutex_);
  since_.reset();
}

void FilesMonitor::Set(const Figures& figures) {
  const std::scoped_lock lock(mutex_);
  figures_ = figures;
}

FilesMonitor::Figures FilesMonitor::figures() const {
  const std::scoped_lock lock(mutex_);
  return figures_;
}

std::optional<std::pair<base::Duration, std::string>> FilesMonitor::Inside(
    base::MonoTime now) const {
  const std::scoped_lock lock(mutex_);
  if (!since_) return std::nullopt;
  return std::pair{base::Duration(now - *since_), path_};
}

}  // namespace expanse::schedulers::slurm
