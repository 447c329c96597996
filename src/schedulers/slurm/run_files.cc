#include "schedulers/slurm/run_files.h"

#include <utility>

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kMaxRetries = 5'000;
constexpr std::size_t kMaxScripts = 20'000;
constexpr std::size_t kPassedPerLook = 64;

}  // namespace

void RunFiles::Offer(std::function<bool()> request) {
  // In order: an end must not overtake its beginning.
  if (retries_.empty() && request()) return;
  if (retries_.size() < kMaxRetries) {
    retries_.push_back(std::move(request));
  } else {
    ++lost_;
  }
}

void RunFiles::Retry() {
  while (!retries_.empty() && retries_.front()()) retries_.pop_front();
}

void RunFiles::Seen(RunId id, const evidence::ExecutionKey& key, TrackedRun& run, const Job& job) {
  const bool is_first = !std::exchange(run.followed, true);
  if (!job.uid) return;  // whose rights to read with is not known
  const evidence::Execution& execution = job.execution;
  const bool wants_script =
      !run.bundled && !execution.stdout_path.empty() && scripts_.size() < kMaxScripts;
  const std::string node = execution.nodes.empty() ? std::string() : execution.nodes.front();
  JobFilesRequest request{.key = key,
                          .job_id = id.job_id,
                          .uid = *job.uid,
                          .user = execution.user,
                          .account = execution.account,
                          .comment = execution.comment,
                          .stdout_path = execution.stdout_path,
                          .stderr_path = execution.stderr_path,
                          .working_directory = execution.working_directory,
                          .command = {},
                          .script = {},
                          .script_pending = wants_script || !is_first,  // "as before"
                          .sources_taken = run.bundled,
                          .ended = run.phase == RunPhase::kEnded,
                          .started = execution.started_at};
  for (const std::string& word : execution.command)
    request.command += (request.command.empty() ? "" : " ") + word;
  if (wants_script) {
    JobFilesRequest with_script = request;
    with_script.script_pending = false;
    // Tasks of an array and components of a het job have the script of the whole.
    scripts_.push_back(
        {.task = {.job_id = id.job_id,
                  .submitted_s = id.submitted_s,
                  .script_id =
                      base::ParseInt<std::uint32_t>(execution.parent_native_id).value_or(id.job_id),
                  .state_save_location = {},
                  .may_ask = false},
         .request = std::move(with_script),
         .node = node});
    if (request.ended) return;  // one look is all there will be: with the script
  }
  Follow(std::move(request), node);
}

// Who follows it is decided when it is taken: samplers come and go.
void RunFiles::Follow(JobFilesRequest request, std::string node) {
  Offer([this, request = std::move(request), node = std::move(node)] {
    return router_.Follow(request, sampler_of_(node));
  });
}

void RunFiles::Ended(const evidence::ExecutionKey& key) {
  Offer([this, key] { return router_.Ended(key); });
}

std::optional<ScriptTask> RunFiles::NextScript() {
  if (script_out_ || scripts_.empty()) return std::nullopt;
  Wanted wanted = std::move(scripts_.front());
  scripts_.pop_front();
  script_out_ = std::move(wanted);
  return script_out_->task;
}

void RunFiles::TakeScript(ScriptDone done) {
  if (!script_out_) return;
  Wanted wanted = *std::exchange(script_out_, std::nullopt);
  // Empty: what the command line names is all there is.
  wanted.request.script = std::move(done.script);
  Follow(std::move(wanted.request), std::move(wanted.node));
}

void RunFiles::Pass(JobTable& table, Outgoing& outgoing) {
  Retry();
  for (evidence::Payload& payload : files_.Take(kPassedPerLook)) {
    if (const auto* bundle = std::get_if<evidence::SourceBundle>(&payload)) {
      const auto identity = ParseIdentity(bundle->key.identity);
      TrackedRun* run =
          identity ? table.Find(RunIdOf(identity->job_id, identity->submitted)) : nullptr;
      if (run != nullptr) run->bundled = true;
    }
    outgoing.Add(std::move(payload));
  }
}

}  // namespace expanse::schedulers::slurm
