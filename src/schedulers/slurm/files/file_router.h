// Decides who looks at a job's output: the sampler of the node that its batch script runs on, if
// there is a live one, else the controller itself. Sources are always looked for here too, because
// the controller has the script's text. One thread, that of the observer.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "schedulers/slurm/files/assignment_board.h"
#include "schedulers/slurm/files/job_files.h"

namespace expanse::schedulers::slurm {

class FileRouter {
 public:
  // `board` null: there are no samplers. All outlive it.
  FileRouter(JobFiles& files, AssignmentBoard* board, const CaptureSwitches& switches,
             base::Clock& clock);

  // As JobFiles::Follow and Ended. `host` runs the batch script; empty: unknown yet.
  [[nodiscard]] bool Follow(JobFilesRequest request, const std::string& host);
  [[nodiscard]] bool Ended(const evidence::ExecutionKey& key);

  // Hosts whose samplers live and may read users' files. Jobs of a host that is no longer among
  // them are followed here from now on; young ones of a host that is new among them are left to its
  // sampler, which the first job's own Prolog may have started. To be called from time to time,
  // changed or not.
  void SetSamplers(std::set<std::string> hosts);

  std::size_t assigned() const { return assigned_.size(); }

 private:
  struct Assigned {
    std::string host;
    JobFilesRequest request;   // without the script's text
    base::MonoTime drop_at{};  // if it has ended
  };
  // Followed here, young: a sampler may still appear on its host.
  struct Young {
    std::string host;
    JobFilesRequest request;  // without the script's text
    base::MonoTime drop_at{};
  };
  void Remember(const JobFilesRequest& request, const std::string& host);
  void HandOver();
  bool MayAssign(const JobFilesRequest& request, const std::string& host) const;
  bool FollowHere(JobFilesRequest request);
  void DropEnded();

  // How long an ended job stays in the file: its sampler looks every few seconds.
  static constexpr std::chrono::minutes kKeepEnded{3};
  static constexpr std::chrono::minutes kYoungFor{5};
  static constexpr std::size_t kMaxYoung = 20'000;

  JobFiles& files_;
  AssignmentBoard* const board_;
  const CaptureSwitches switches_;
  base::Clock& clock_;
  std::set<std::string> samplers_;
  std::map<std::string, Assigned> assigned_;  // by identity
  std::map<std::string, Young> young_;        // likewise
};

}  // namespace expanse::schedulers::slurm
