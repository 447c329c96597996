#include "schedulers/slurm/files/assignment_board.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/files.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr auto kHangsAfter = 30s;

bool IsHostName(const std::string& host) {
  return !host.empty() && host.size() <= 255 && host.front() != '.' &&
         std::none_of(host.begin(), host.end(), [](char c) {
           return c == '/' || static_cast<unsigned char>(c) <= ' ' || c == 0x7F;
         });
}

// Its owner's alone, and really a directory: what is written there tells samplers what to read.
base::Status PrepareDirectory(const std::string& directory) {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory, 0700));
  struct stat info{};
  if (::lstat(directory.c_str(), &info) != 0) return base::FailErrno(errno, directory);
  if (S_ISDIR(info.st_mode) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return base::Fail(base::Code::kPermissionDenied, "assign.untrusted",
                    directory + " can be written by others than its owner");
}

}  // namespace

struct AssignmentBoard::State {
  State(AssignmentBoardOptions o, base::Clock& c)
      : options(std::move(o)), clock(c), started(c.Mono()) {}

  const AssignmentBoardOptions options;
  base::Clock& clock;
  const base::MonoTime started;

  mutable std::mutex mutex;  // guards all below
  std::map<std::string, std::map<std::uint32_t, Assignment>> hosts;
  std::set<std::string> changed;
  base::Status last;
  std::optional<base::MonoTime> inside_since;
  std::uint64_t written = 0;

  // The thread's.
  bool cleaned = false;

  std::set<std::string> TakeChanged() {
    const std::scoped_lock lock(mutex);
    if (!changed.empty() || !cleaned) inside_since = clock.Mono();
    return std::exchange(changed, {});
  }

  base::Status Write(const std::string& host) {
    std::vector<Assignment> jobs;
    {
      const std::scoped_lock lock(mutex);
      if (const auto found = hosts.find(host); found != hosts.end())
        for (const auto& [id, job] : found->second) jobs.push_back(job);
    }
    const std::string path = base::JoinPath(options.directory, host);
    if (jobs.empty()) return base::RemoveFile(path);
    return base::WriteFileAtomically(path, EncodeAssignments(host, jobs), 0600);
  }

  base::Status RemoveOld() {
    EXPANSE_ASSIGN_OR_RETURN(const auto names, base::ListDirectory(options.directory));
    for (const std::string& name : names) {
      {
        const std::scoped_lock lock(mutex);
        if (hosts.contains(name)) continue;
      }
      EXPANSE_RETURN_IF_ERROR(base::RemoveFile(base::JoinPath(options.directory, name)));
    }
    return {};
  }

  base::Status Round(const std::set<std::string>& todo, std::set<std::string>* failed) {
    base::Status status;
    const bool clean = !cleaned && clock.Mono() - started >= options.forget_after;
    if (todo.empty() && !clean) return status;
    *failed = todo;
    EXPANSE_RETURN_IF_ERROR(PrepareDirectory(options.directory));
    for (const std::string& host : todo) {
      if (auto one = Write(host); one) {
        failed->erase(host);
      } else {
        status = std::move(one);
      }
    }
    if (clean) {
      cleaned = true;
      if (auto removed = RemoveOld(); !removed) status = std::move(removed);
    }
    return status;
  }

  void Run(const std::stop_token& stop) {
    do {
      const std::set<std::string> todo = TakeChanged();
      std::set<std::string> failed;
      base::Status status = Round(todo, &failed);
      if (stop.stop_requested()) return;
      const std::scoped_lock lock(mutex);
      inside_since.reset();
      if (!todo.empty() || !status) last = std::move(status);
      written += todo.size() - failed.size();
      changed.merge(failed);
    } while (clock.WaitFor(stop, options.interval));
  }
};

AssignmentBoard::AssignmentBoard(std::shared_ptr<State> state) : state_(std::move(state)) {
  thread_.Start([shared = state_](const std::stop_token& stop) { shared->Run(stop); });
}

AssignmentBoard::~AssignmentBoard() { Stop(); }

base::Result<std::unique_ptr<AssignmentBoard>> AssignmentBoard::Start(
    AssignmentBoardOptions options, base::Clock& clock) {
  if (options.directory.empty() || options.directory.front() != '/') {
    return base::Fail(base::Code::kInvalidArgument, "assign.directory",
                      "assignments need an absolute directory");
  }
  return std::unique_ptr<AssignmentBoard>(
      new AssignmentBoard(std::make_shared<State>(std::move(options), clock)));
}

bool AssignmentBoard::Set(const std::string& host, Assignment assignment) {
  if (!IsHostName(host) || assignment.job_id == 0 || assignment.uid == 0) return false;
  const std::scoped_lock lock(state_->mutex);
  auto& jobs = state_->hosts[host];
  const auto known = jobs.find(assignment.job_id);
  if (known == jobs.end()) {
    if (jobs.size() >= kMaxAssignments) return false;
    jobs.emplace(assignment.job_id, std::move(assignment));
  } else {
    if (known->second == assignment) return true;
    known->second = std::move(assignment);
  }
  state_->changed.insert(host);
  return true;
}

void AssignmentBoard::Remove(const std::string& host, std::uint32_t job_id) {
  const std::scoped_lock lock(state_->mutex);
  const auto found = state_->hosts.find(host);
  if (found == state_->hosts.end() || found->second.erase(job_id) == 0) return;
  if (found->second.empty()) state_->hosts.erase(found);
  state_->changed.insert(host);
}

evidence::HealthRow AssignmentBoard::health() const {
  evidence::HealthRow row{.collector = "assignments",
                          .status = evidence::HealthStatus::kOk,
                          .checked_at = state_->clock.Now()};
  const base::MonoTime now = state_->clock.Mono();
  const std::scoped_lock lock(state_->mutex);
  std::size_t jobs = 0;
  for (const auto& [host, assigned] : state_->hosts) jobs += assigned.size();
  row.figures = {{"hosts", double(state_->hosts.size())},
                 {"jobs", double(jobs)},
                 {"written", double(state_->written)}};
  if (state_->inside_since && now - *state_->inside_since >= kHangsAfter) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = "hangs";
    row.message = "no answer from the file system of " + state_->options.directory;
  } else if (!state_->last) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = state_->last.error().reason;
    row.message = state_->last.error().message;
  }
  return row;
}

void AssignmentBoard::Stop() { (void)thread_.Stop(2s); }

}  // namespace expanse::schedulers::slurm
