#include "schedulers/slurm/files/file_router.h"

#include "base/crypto.h"

namespace expanse::schedulers::slurm {
namespace {

Assignment AssignmentOf(const JobFilesRequest& request, const CaptureChoice& choice) {
  return {.job_id = request.job_id,
          .uid = request.uid,
          .logs = choice.logs,
          // Only of what can be told from what was submitted: a script by its hash, a program.
          .sources = choice.sources && !request.sources_taken && !request.script_pending &&
                     !request.command.empty(),
          .ended = request.ended,
          .stdout_path = request.stdout_path,
          .stderr_path = request.stderr_path,
          .working_directory = request.working_directory,
          .command = request.command,
          .script_sha256 = request.script_sha256,
          .started = request.started};
}

// What is said of a job later adds to what was said before.
void Add(JobFilesRequest& known, const JobFilesRequest& more) {
  const auto take = [](std::string& to, const std::string& from) {
    if (!from.empty()) to = from;
  };
  take(known.user, more.user);
  take(known.account, more.account);
  take(known.comment, more.comment);
  take(known.stdout_path, more.stdout_path);
  take(known.stderr_path, more.stderr_path);
  take(known.working_directory, more.working_directory);
  take(known.command, more.command);
  take(known.script_sha256, more.script_sha256);
  known.script_pending = known.script_pending && more.script_pending;
  known.ended = known.ended || more.ended;
  if (more.started) known.started = more.started;
}

}  // namespace

FileRouter::FileRouter(JobFiles& files, AssignmentBoard* board, const CaptureSwitches& switches,
                       base::Clock& clock)
    : files_(files), board_(board), switches_(switches), clock_(clock) {}

bool FileRouter::MayAssign(const JobFilesRequest& request, const std::string& host) const {
  // A sampler reads nothing as root.
  return board_ != nullptr && request.job_id != 0 && request.uid != 0 && samplers_.contains(host);
}

bool FileRouter::Follow(JobFilesRequest request, const std::string& host) {
  const auto known = assigned_.find(request.key.identity);
  const bool assigned = known != assigned_.end();
  if (!assigned && !MayAssign(request, host)) {
    Remember(request, host);
    return files_.Follow(std::move(request));
  }
  JobFilesRequest here = request;
  here.logs = false;
  if (!files_.Follow(std::move(here))) return false;
  if (!request.script.empty()) request.script_sha256 = base::Sha256Hex(request.script);
  request.script = {};
  const CaptureChoice choice =
      ChooseCapture(switches_, request.user, request.account, request.comment);
  if (!assigned) {
    if (!board_->Set(host, AssignmentOf(request, choice))) return FollowHere(std::move(request));
    const std::string identity = request.key.identity;
    assigned_.emplace(identity, Assigned{host, std::move(request), clock_.Mono() + kKeepEnded});
    young_.erase(identity);
    return true;
  }
  const bool ended_before = known->second.request.ended;
  Add(known->second.request, request);
  (void)board_->Set(known->second.host, AssignmentOf(known->second.request, choice));
  if (request.ended && !ended_before) known->second.drop_at = clock_.Mono() + kKeepEnded;
  return true;
}

void FileRouter::Remember(const JobFilesRequest& request, const std::string& host) {
  if (board_ == nullptr || request.job_id == 0 || request.uid == 0 || host.empty()) return;
  JobFilesRequest known = request;
  known.script = {};
  if (!request.script.empty()) known.script_sha256 = base::Sha256Hex(request.script);
  const auto found = young_.find(request.key.identity);
  if (found != young_.end()) {
    Add(found->second.request, known);
  } else if (young_.size() < kMaxYoung) {
    young_.emplace(request.key.identity, Young{host, std::move(known), clock_.Mono() + kYoungFor});
  }
}

void FileRouter::HandOver() {
  const base::MonoTime now = clock_.Mono();
  std::erase_if(young_, [now](const auto& entry) { return now >= entry.second.drop_at; });
  for (auto entry = young_.begin(); entry != young_.end();) {
    const auto next = std::next(entry);  // Follow takes the entry out
    const Young& job = entry->second;
    if (samplers_.contains(job.host)) {
      JobFilesRequest request = job.request;
      // Of a job that is over, everything but its output was looked at here.
      request.sources_taken = request.sources_taken || request.ended;
      (void)Follow(std::move(request), std::string(job.host));
    }
    entry = next;
  }
}

bool FileRouter::Ended(const evidence::ExecutionKey& key) {
  if (!files_.Ended(key)) return false;
  if (const auto young = young_.find(key.identity); young != young_.end())
    young->second.request.ended = true;
  const auto found = assigned_.find(key.identity);
  if (found == assigned_.end() || found->second.request.ended) return true;
  JobFilesRequest& request = found->second.request;
  request.ended = true;
  found->second.drop_at = clock_.Mono() + kKeepEnded;
  (void)board_->Set(found->second.host,
                    AssignmentOf(request, ChooseCapture(switches_, request.user, request.account,
                                                        request.comment)));
  return true;
}

// Its output too; what there is to its sources was taken when it was first followed.
bool FileRouter::FollowHere(JobFilesRequest request) {
  request.logs = true;
  request.sources_taken = true;
  return files_.Follow(std::move(request));
}

void FileRouter::DropEnded() {
  const base::MonoTime now = clock_.Mono();
  std::erase_if(assigned_, [&](const auto& entry) {
    const Assigned& job = entry.second;
    if (!job.request.ended || now < job.drop_at) return false;
    board_->Remove(job.host, job.request.job_id);
    return true;
  });
}

void FileRouter::SetSamplers(std::set<std::string> hosts) {
  samplers_ = std::move(hosts);
  if (board_ == nullptr) return;
  DropEnded();
  HandOver();
  for (auto entry = assigned_.begin(); entry != assigned_.end();) {
    const Assigned& job = entry->second;
    // Where it is not taken it stays, and is offered again with the next call.
    if (samplers_.contains(job.host) || !FollowHere(job.request)) {
      ++entry;
      continue;
    }
    board_->Remove(job.host, job.request.job_id);
    entry = assigned_.erase(entry);
  }
}

}  // namespace expanse::schedulers::slurm
