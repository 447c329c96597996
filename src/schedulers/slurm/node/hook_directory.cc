#include "schedulers/slurm/node/hook_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostListed = 40'000;  // more than hooks of two nodes can leave
constexpr std::size_t kMostQuarantined = 64;
// A hook writes its event in one go; one that is not whole after this long stays so.
constexpr auto kTornAfter = 10s;

base::WallTime ModifiedAt(const struct stat& info) {
  return base::WallTime(std::chrono::seconds(info.st_mtim.tv_sec) +
                        std::chrono::microseconds(info.st_mtim.tv_nsec / 1000));
}

// Only root and we may add or replace files: everything else rests on that. Root itself believes
// the owner whom it gave the directory to; what it reads there is data.
bool IsTrusted(const struct stat& info) {
  const uid_t us = ::geteuid();
  return (info.st_mode & 0022) == 0 && (info.st_uid == 0 || info.st_uid == us || us == 0);
}

}  // namespace

struct HookDirectory::Candidate {
  std::string name;
  timespec modified{};
  bool is_file = false;
  bool is_epilog = false;
  // Times are as coarse as the kernel's tick: what both have the same began before it ended.
  auto Order() const { return std::tie(modified.tv_sec, modified.tv_nsec, is_epilog, name); }
};

HookDirectory::HookDirectory(std::string directory, std::string quarantine)
    : directory_(std::move(directory)), quarantine_(std::move(quarantine)) {}

std::vector<HookDirectory::Candidate> HookDirectory::List(int directory) {
  std::vector<Candidate> found;
  const int copy = ::fcntl(directory, F_DUPFD_CLOEXEC, 0);
  DIR* dir = copy < 0 ? nullptr : ::fdopendir(copy);
  if (dir == nullptr) {
    if (copy >= 0) ::close(copy);
    return found;
  }
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    const bool is_epilog = name.starts_with("epilog.");
    if (!is_epilog && !name.starts_with("prolog.")) continue;
    if (found.size() >= kMostListed) break;
    struct stat info{};
    if (::fstatat(directory, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    found.push_back({.name = std::string(name),
                     .modified = info.st_mtim,
                     .is_file = S_ISREG(info.st_mode) && info.st_nlink == 1,
                     .is_epilog = is_epilog});
  }
  ::closedir(dir);
  std::ranges::sort(found, {}, &Candidate::Order);
  return found;
}

base::Result<HookEvent> HookDirectory::Read(int directory, const Candidate& candidate,
                                            std::string* bytes) const {
  bytes->clear();
  if (!candidate.is_file) {
    return base::Fail(base::Code::kPermissionDenied, "hook.forged", "not a regular file");
  }
  base::UniqueFd file(::openat(directory, candidate.name.c_str(),
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) return base::FailErrno(errno, candidate.name);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return base::FailErrno(errno, candidate.name);
  auto content = base::ReadFd(file.get(), kMaxHookEvent);
  if (!content) return std::unexpected(std::move(content.error()));
  *bytes = std::move(*content);
  EXPANSE_ASSIGN_OR_RETURN(HookEvent event, ParseHookEvent(*bytes));
  if ((event.kind == HookKind::kEpilog) != candidate.is_epilog) {
    return base::Fail(base::Code::kInvalidArgument, "hook.malformed", "name and content differ");
  }
  event.at = ModifiedAt(info);
  return event;
}

void HookDirectory::TakeAway(int directory, const std::string& name, const std::string& bytes,
                             std::string_view reason, base::WallTime now) {
  ++figures_.quarantined;
  figures_.quarantined_at = now;
  if (log_.Allow()) {
    base::LogWarn("hooks.quarantined",
                  {{"directory", directory_}, {"file", name}, {"reason", reason}});
  }
  if (!quarantine_.empty() && !bytes.empty() && base::MakeDirectories(quarantine_, 0700)) {
    const auto kept = base::ListDirectory(quarantine_);
    if (kept && kept->size() < kMostQuarantined) {
      (void)base::WriteFileAtomically(
          base::JoinPath(quarantine_, fmt::format("{}.{}", figures_.quarantined, name)), bytes,
          0600);
    }
  }
  ::unlinkat(directory, name.c_str(), 0);
}

base::Result<std::vector<HookDirectory::Entry>> HookDirectory::Look(base::WallTime now,
                                                                    std::size_t limit) {
  figures_.waiting = 0;
  base::UniqueFd fd(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() && errno == ENOENT) return std::vector<Entry>();
  if (!fd.valid()) return base::FailErrno(errno, directory_);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::FailErrno(errno, directory_);
  if (!IsTrusted(info)) {
    return base::Fail(base::Code::kPermissionDenied, "hook.untrusted",
                      directory_ +
                          ": others could forge events in it; give it to root or to the "
                          "daemon's user, mode 0700");
  }
  std::vector<Entry> entries;
  std::string bytes;
  const std::vector<Candidate> candidates = List(fd.get());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (entries.size() >= limit) {
      figures_.waiting = candidates.size() - i;
      break;
    }
    auto event = Read(fd.get(), candidates[i], &bytes);
    if (event) {
      figures_.last_at = std::max(figures_.last_at, event->at);
      entries.push_back({.name = candidates[i].name, .event = std::move(*event)});
      continue;
    }
    const base::Error& error = event.error();
    // Not ours to judge: it vanished, or may not be read by us.
    if (error.reason.starts_with("os.")) continue;
    const base::WallTime modified(std::chrono::seconds(candidates[i].modified.tv_sec));
    if (error.reason == "hook.torn" && std::chrono::abs(now - modified) < kTornAfter) continue;
    TakeAway(fd.get(), candidates[i].name, bytes, error.reason, now);
  }
  return entries;
}

base::Status HookDirectory::Remove(const Entry& entry) {
  EXPANSE_RETURN_IF_ERROR(base::RemoveFile(base::JoinPath(directory_, entry.name)));
  ++figures_.taken;
  return {};
}

}  // namespace expanse::schedulers::slurm
