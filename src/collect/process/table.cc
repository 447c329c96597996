#include "collect/process/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/text.h"

namespace expanse::collect {
namespace {

constexpr std::chrono::minutes kForgotten{1};   // entries that nobody asks for
constexpr std::uint64_t kRoundsOfALook = 6;     // how old a mere look may be
constexpr std::chrono::minutes kShareHolds{1};  // of a large process
constexpr std::uint64_t kSmall = 256ULL << 20;  // bytes: walking the page tables is cheap below

}  // namespace

std::string ProcessTable::Path(pid_t pid, const char* file) const {
  return base::JoinPath(root_, fmt::format("proc/{}/{}", pid, file));
}

void ProcessTable::NextRound(base::MonoTime now) {
  now_ = now;
  std::erase_if(entries_, [&](const auto& entry) {
    return !entry.second.alive || now_ - entry.second.asked_at >= kForgotten;
  });
  ++round_;
  for (auto& [pid, entry] : entries_) entry.fresh = false;
}

ProcessTable::Entry* ProcessTable::Refresh(pid_t pid) {
  auto [it, added] = entries_.try_emplace(pid);
  Entry& entry = it->second;
  if (added) entry.stat_file = KernelFile(Path(pid, "stat"), &fds_);
  entry.asked_at = now_;
  if (entry.fresh) return entry.alive ? &entry : nullptr;
  entry.fresh = true;
  auto text = entry.stat_file.Read(buffer_);
  // The descriptor of a process that ended fails for good; another process may have its pid by now.
  if (!text && !added) text = entry.stat_file.Read(buffer_);
  auto stat = text ? ParseProcStat(*text) : std::nullopt;
  entry.alive = stat.has_value() && stat->pid == pid;
  if (!entry.alive) return nullptr;
  if (!added && stat->start != entry.stat.start) {
    entry.share.reset();
    entry.status_file = KernelFile();
  }
  entry.stat = *std::move(stat);
  return &entry;
}

ProcessTable::Entry* ProcessTable::Look(pid_t pid) {
  const auto it = entries_.find(pid);
  // Spread by pid, so that not all are read in the same round.
  const bool due = (round_ + static_cast<std::uint64_t>(pid)) % kRoundsOfALook == 0;
  if (it == entries_.end() || due) return Refresh(pid);
  it->second.asked_at = now_;
  return it->second.alive ? &it->second : nullptr;
}

const std::vector<pid_t>& ProcessTable::Pids() {
  if (pids_round_ == round_) return pids_;
  pids_round_ = round_;
  pids_.clear();
  if (const auto names = base::ListDirectory(base::JoinPath(root_, "proc"))) {
    for (const std::string& name : *names) {
      if (const auto pid = base::ParseInt<pid_t>(name); pid && *pid > 0) pids_.push_back(*pid);
    }
  }
  std::ranges::sort(pids_);
  return pids_;
}

std::optional<ProcessTable::Need> ProcessTable::ReadNeed(Entry& entry, bool shared) {
  if (entry.status_file.path().empty())
    entry.status_file = KernelFile(Path(entry.stat.pid, "status"), &fds_);
  const auto text = entry.status_file.Read(buffer_);
  const auto resident = text ? ParseProcStatus(*text) : std::nullopt;
  if (!resident) return std::nullopt;
  const std::uint64_t rss = resident->anon + resident->shmem;
  if (!shared || rss == 0) return Need{resident->anon, resident->shmem, true};
  const bool due = !entry.share || rss < kSmall || rss > 2 * entry.share_rss ||
                   now_ - entry.share_at >= kShareHolds;
  if (due) {
    KernelFile rollup(Path(entry.stat.pid, "smaps_rollup"), nullptr);
    const auto rollup_text = rollup.Read(buffer_);
    const auto need = rollup_text ? ParseProportionalNeed(*rollup_text) : std::nullopt;
    if (!need) {
      entry.share.reset();
      return Need{resident->anon, resident->shmem, false};
    }
    entry.share = std::min(1.0, static_cast<double>(*need) / static_cast<double>(rss));
    entry.share_rss = rss;
    entry.share_at = now_;
  }
  return Need{static_cast<std::uint64_t>(static_cast<double>(rss) * *entry.share), 0, true};
}

bool ProcessTable::SeesOthers() { return base::Exists(Path(1, "stat")); }

}  // namespace expanse::collect
