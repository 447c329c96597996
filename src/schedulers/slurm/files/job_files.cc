#include "schedulers/slurm/files/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "schedulers/slurm/files/job_follower.h"
#include "schedulers/slurm/files/script_pool.h"

namespace expanse::schedulers::slurm {
namespace {

using namespace std::chrono_literals;

constexpr auto kIdleWait = 500ms;
constexpr auto kStopWait = 2s;
// Requests that were refused count as trouble in health for so long.
constexpr auto kRefusedFor = 60s;

}  // namespace

// Shared between owner and thread, so that a thread that is stuck in a file system can be left
// behind.
class JobFiles::Impl {
 public:
  Impl(JobFilesOptions options, base::Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        results_(options_.max_result_bytes),
        scripts_(options_.max_script_bytes),
        follower_(options_, clock, results_, monitor_),
        assigned_(options_.assignments) {}

  bool Post(JobFilesRequest request) {
    const std::scoped_lock lock(mutex_);
    if (requests_.size() >= options_.max_requests || known_ >= options_.max_jobs) return Refused();
    Request posted{.kind = Kind::kFollow};
    if (!request.script.empty()) {
      posted.script = scripts_.Add(request.script, options_.sources.file_bytes + 1);
      if (!posted.script) return Refused();
      request.script.clear();
      request.script.shrink_to_fit();
    }
    posted.follow = std::move(request);
    requests_.push_back(std::move(posted));
    return true;
  }

  bool Post(bool end, const std::string& identity) {
    const std::scoped_lock lock(mutex_);
    // Twice as many, so that jobs can end while none more are taken.
    if (requests_.size() >= 2 * options_.max_requests) return Refused();
    requests_.push_back({.kind = end ? Kind::kEnd : Kind::kForget, .identity = identity});
    return true;
  }

  ResultQueue& results() { return results_; }
  evidence::HealthRow Health() const;

  // The thread's.
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      TakeRequests();
      TakeAssignments();
      if (stop.stop_requested()) break;
      const bool more = follower_.Step(stop);
      if (stop.stop_requested()) break;
      if (!more) clock_.WaitFor(stop, kIdleWait);
    }
  }

 private:
  enum class Kind : std::uint8_t { kFollow, kEnd, kForget };
  struct Request {
    Kind kind = Kind::kFollow;
    JobFilesRequest follow = {};
    ScriptText script = {};
    std::string identity = {};
  };

  bool Refused() {
    refused_at_ = clock_.Mono();
    return false;
  }

  void TakeRequests() {
    std::deque<Request> taken;
    {
      const std::scoped_lock lock(mutex_);
      taken.swap(requests_);
    }
    for (Request& request : taken) {
      switch (request.kind) {
        case Kind::kFollow:
          follower_.Follow(request.follow, std::move(request.script));
          break;
        case Kind::kEnd:
          follower_.End(request.identity);
          break;
        case Kind::kForget:
          follower_.Forget(request.identity);
          break;
      }
    }
    const std::scoped_lock lock(mutex_);
    known_ = follower_.jobs();
  }

  void TakeAssignments() {
    if (options_.assignments.directory.empty()) return;
    monitor_.Enter(options_.assignments.directory, clock_.Mono());
    assigned_.Poll(clock_.Mono(), follower_);
    monitor_.Leave();
    const std::scoped_lock lock(mutex_);
    last_assignment_ = assigned_.last();
  }

  const JobFilesOptions options_;
  base::Clock& clock_;
  ResultQueue results_;
  FilesMonitor monitor_;

  mutable std::mutex mutex_;  // guards all up to last_assignment_
  std::deque<Request> requests_;
  ScriptPool scripts_;
  std::size_t known_ = 0;  // jobs that the follower has
  std::optional<base::MonoTime> refused_at_;
  base::Status last_assignment_;

  JobFollower follower_;  // this and all below are the thread's
  AssignmentReader assigned_;
};

evidence::HealthRow JobFiles::Impl::Health() const {
  const FilesMonitor::Figures figures = monitor_.figures();
  const base::MonoTime now = clock_.Mono();
  evidence::HealthRow row{.collector = "job_files",
                          .status = evidence::HealthStatus::kOk,
                          .checked_at = clock_.Now(),
                          .figures = {{"jobs", double(figures.followed)},
                                      {"looks", double(figures.looks)},
                                      {"tails", double(figures.tails)},
                                      {"bundles", double(figures.bundles)},
                                      {"redactions", double(figures.redactions)},
                                      {"unreadable", double(figures.troubles)},
                                      {"cpu_s", figures.cpu_s},
                                      {"overdue_s", figures.overdue_s},
                                      {"results_waiting", double(results_.size())}}};
  const auto degrade = [&row](std::string_view reason, std::string message) {
    row.status = evidence::HealthStatus::kDegraded;
    row.reason = reason;
    row.message = std::move(message);
  };
  bool refused = false;
  base::Status assigned;
  {
    const std::scoped_lock lock(mutex_);
    assigned = last_assignment_;
    row.figures["requests_waiting"] = double(requests_.size());
    refused = refused_at_ && now - *refused_at_ < kRefusedFor;
  }
  const auto inside = monitor_.Inside(now);
  const bool hangs = inside && inside->first >= options_.hangs_after;
  if (hangs) {
    degrade("hangs", fmt::format("no answer for {} s from the file system of {}",
                                 static_cast<std::int64_t>(base::ToSeconds(inside->first)),
                                 base::EscapeForDisplay(inside->second)));
  } else if (figures.rights_refused) {
    degrade("no_permission",
            "output and sources of jobs are read as their users, which needs root or CAP_SETUID "
            "and CAP_SETGID");
  } else if (!assigned) {
    degrade(assigned.error().reason, assigned.error().message);
  } else if (refused) {
    degrade("behind", "more jobs begin and end than can be taken up");
  } else if (figures.overdue_s > 4 * base::ToSeconds(options_.longest)) {
    degrade("behind", "output of running jobs is looked at less often than it should be");
  }
  return row;
}

JobFiles::JobFiles(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

base::Result<std::unique_ptr<JobFiles>> JobFiles::Start(JobFilesOptions options,
                                                        base::Clock& clock) {
  auto files =
      std::unique_ptr<JobFiles>(new JobFiles(std::make_shared<Impl>(std::move(options), clock)));
  try {
    files->thread_.Start([impl = files->impl_](const std::stop_token& stop) { impl->Run(stop); });
  } catch (const std::system_error& error) {
    return base::Fail(base::Code::kResourceExhausted, "files.no_thread", error.what());
  }
  return files;
}

JobFiles::~JobFiles() { Stop(); }

bool JobFiles::Follow(JobFilesRequest request) { return impl_->Post(std::move(request)); }

bool JobFiles::Ended(const evidence::ExecutionKey& key) {
  return impl_->Post(/*end=*/true, key.identity);
}

bool JobFiles::Forget(const evidence::ExecutionKey& key) {
  return impl_->Post(/*end=*/false, key.identity);
}

std::vector<evidence::Payload> JobFiles::Take(std::size_t max) {
  return impl_->results().Take(max);
}

void JobFiles::PutBack(std::vector<evidence::Payload> payloads) {
  impl_->results().PutBack(std::move(payloads));
}

evidence::HealthRow JobFiles::health() const { return impl_->Health(); }

void JobFiles::Stop() { (void)thread_.Stop(kStopWait); }

}  // namespace expanse::schedulers::slurm
