#include "schedulers/slurm/files/assignment_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files.h"
#include "collect/files/user_files.h"
#include "schedulers/slurm/files/job_follower.h"

namespace expanse::schedulers::slurm {
namespace {

std::string IdentityOf(std::uint32_t job_id) { return fmt::format("job:{}", job_id); }

JobFilesRequest RequestOf(const Assignment& job) {
  JobFilesRequest request;
  request.key = {evidence::SourceType::kSlurm, IdentityOf(job.job_id)};
  request.job_id = job.job_id;
  request.uid = job.uid;
  request.logs = job.logs;
  request.sources_taken = !job.sources;
  request.stdout_path = job.stdout_path;
  request.stderr_path = job.stderr_path;
  request.working_directory = job.working_directory;
  request.command = job.command;
  request.script_sha256 = job.script_sha256;
  request.started = job.started;
  request.ended = job.ended;
  return request;
}

base::Status CheckOwner(const struct stat& info, uid_t owner) {
  const bool others_write = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if ((info.st_uid == owner || info.st_uid == 0) && !others_write) return {};
  return base::Fail(base::Code::kPermissionDenied, "assign.untrusted",
                    "assignments could be written by others than the daemon's user");
}

base::Status StatPath(const std::string& path, struct stat* info) {
  if (::lstat(path.c_str(), info) != 0) return base::FailErrno(errno, path);
  return {};
}

}  // namespace

void AssignmentReader::Poll(base::MonoTime now, JobFollower& follower) {
  if (options_.directory.empty() || now < next_) return;
  next_ = now + options_.interval;
  auto read = Read();
  last_ = {};
  if (!read) {
    last_ = std::unexpected(std::move(read).error());
  } else if (*read) {
    Apply(**std::move(read), follower);
  }
}

base::Result<std::optional<std::vector<Assignment>>> AssignmentReader::Read() {
  struct stat spool{};
  EXPANSE_RETURN_IF_ERROR(StatPath(options_.spool, &spool));
  // As its owner, because a file server may take root for nobody.
  std::optional<collect::UserRights> rights;
  if (spool.st_uid != 0 && spool.st_uid != ::geteuid()) {
    auto assumed =
        collect::UserRights::Assume({.uid = spool.st_uid, .gid = spool.st_gid, .groups = {}});
    if (!assumed) return std::unexpected(std::move(assumed).error());
    rights.emplace(*std::move(assumed));
  }
  const auto nothing = [this]() -> std::optional<std::vector<Assignment>> {
    version_.reset();
    return std::vector<Assignment>{};
  };
  struct stat info{};
  if (const auto found = StatPath(options_.directory, &info); !found) {
    if (found.error().code == base::Code::kNotFound) return nothing();
    return std::unexpected(found.error());
  }
  EXPANSE_RETURN_IF_ERROR(CheckOwner(info, spool.st_uid));
  auto file = collect::OpenRegularFile(base::JoinPath(options_.directory, options_.host),
                                       /*follow_links=*/false);
  if (!file) {
    if (file.error().reason == "files.not_found") return nothing();
    return std::unexpected(std::move(file).error());
  }
  if (::fstat(file->get(), &info) != 0) return base::FailErrno(errno, "reading an assignment");
  EXPANSE_RETURN_IF_ERROR(CheckOwner(info, spool.st_uid));
  const Version version{info.st_ino, info.st_size,
                        std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
  if (version_ == version) return std::nullopt;
  EXPANSE_ASSIGN_OR_RETURN(const std::string bytes, base::ReadFd(file->get(), kMaxAssignmentBytes));
  EXPANSE_ASSIGN_OR_RETURN(auto assignments, ParseAssignments(bytes, options_.host));
  version_ = version;
  return assignments;
}

void AssignmentReader::Apply(std::vector<Assignment> assignments, JobFollower& follower) {
  std::map<std::uint32_t, Assignment> now;
  for (Assignment& job : assignments) {
    const auto known = options_.user_of_job ? options_.user_of_job(job.job_id) : std::nullopt;
    if (known && *known != job.uid) {
      ++refused_;
      continue;
    }
    now.insert_or_assign(job.job_id, std::move(job));
  }
  for (const auto& [id, before] : followed_)
    if (!now.contains(id)) follower.Forget(IdentityOf(id));
  for (const auto& [id, job] : now) {
    const auto before = followed_.find(id);
    if (before == followed_.end()) {
      follower.Follow(RequestOf(job), nullptr);
      continue;
    }
    // A job that was looked at for the last time is not taken up again because it says so here too.
    Assignment same_end = job;
    same_end.ended = before->second.ended;
    if (same_end != before->second && !before->second.ended)
      follower.Follow(RequestOf(same_end), nullptr);
    if (job.ended) follower.End(IdentityOf(id));
  }
  followed_ = std::move(now);
}

}  // namespace expanse::schedulers::slurm
