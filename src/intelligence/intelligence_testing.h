// What the tests of the intelligence plane share: callers, and an engine that does as it is told.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/analyser.h"
#include "intelligence/diagnoser.h"
#include "intelligence/runbook_source.h"
#include "net/caller.h"

namespace expanse::intelligence {

inline net::CallContext UserCall(std::string_view user = "user-1",
                                 std::string_view organisation = "org-1",
                                 std::vector<std::string> permissions = {"intelligence.use",
                                                                         "executions.read"}) {
  net::CallContext context;
  context.caller.kind = net::CallerKind::kUser;
  context.caller.subject = user;
  context.caller.organisation_id = organisation;
  context.caller.permissions = std::move(permissions);
  context.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  return context;
}

inline v1::AnalyseRequest RequestFor(std::string data, std::string path = "train.sh") {
  v1::AnalyseRequest request;
  request.mutable_target()->set_path(std::move(path));
  request.mutable_target()->set_data(std::move(data));
  return request;
}

// Answers with the target's text as rationale and one artefact; a target that says "unreadable" is
// refused, one that says "broken" fails inside. Thread-safe.
class FakeAnalyser final : public Analyser {
 public:
  base::Result<std::string> JobName(const analyse::Question& question) override {
    if (question.target.data == "unreadable") {
      return base::Fail(base::Code::kInvalidArgument, "analyse.unknown_format",
                        "this is no workload");
    }
    return "job of " + question.target.path;
  }

  base::Result<AnalyseOutcome> Do(const AnalyseTask& task) override {
    EXPANSE_ASSIGN_OR_RETURN(std::string name, JobName(task.question));
    {
      std::unique_lock lock(mutex_);
      ++begun_;
      tasks_.push_back(task);
      changed_.notify_all();
      changed_.wait(lock, [this] { return !held_; });
    }
    if (task.question.target.data == "broken")
      return base::Fail(base::Code::kInternal, "engine.broken", "SELECT secrets FROM table");
    AnalyseOutcome outcome;
    outcome.job_name = std::move(name);
    outcome.cache_key = base::Sha256Hex(task.question.target.data + version);
    if (task.use_cache && runs != nullptr) {
      EXPANSE_ASSIGN_OR_RETURN(
          outcome.cached, runs->FindCached(task.organisation_id, task.user_id, outcome.cache_key));
      if (outcome.cached) return outcome;
    }
    store::RunArtifactRow artifact{.artifact_id = base::NewUuid({}),
                                   .content_hash = "sha256:c",
                                   .source_file = task.question.target.path,
                                   .source_hash = "sha256:s",
                                   .data = "--- diff of " + task.question.target.data};
    v1::AnalyseResult result;
    result.mutable_recommended_resources()->set_rationale(task.question.target.data);
    result.add_artifacts()->set_artifact_id(artifact.artifact_id);
    outcome.answer = result.SerializeAsString();
    outcome.artifacts.push_back(std::move(artifact));
    return outcome;
  }

  // From now on work does not end until Release.
  void Hold() {
    const std::scoped_lock lock(mutex_);
    held_ = true;
  }
  void Release() {
    const std::scoped_lock lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // Returns when so many have begun in all.
  void WaitForBegun(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= count; });
  }
  std::size_t begun() {
    const std::scoped_lock lock(mutex_);
    return begun_;
  }
  std::vector<AnalyseTask> tasks() {
    const std::scoped_lock lock(mutex_);
    return tasks_;
  }

  std::string version;              // of the history; set between calls
  store::RunStore* runs = nullptr;  // where answers are looked for first
 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool held_ = false;
  std::size_t begun_ = 0;
  std::vector<AnalyseTask> tasks_;
};

// The program's runbooks, which take a while to compile: one set for all tests of a process.
inline RunbookSource& TestRunbooks() {
  static const auto runbooks = EmbeddedRunbooks::Create().value();
  return *runbooks;
}

// Knows one execution of org-1 and says of it what it is told. Thread-safe.
class FakeDiagnoser final : public Diagnoser {
 public:
  static constexpr const char* kExecution = "0190a0a0-0000-8000-8000-000000000001";

  base::Result<evidence::Execution> Find(const std::string& organisation_id,
                                         const ExecutionName& name) override {
    if (organisation_id != "org-1" || (name.execution_id != kExecution && name.native_id != "41"))
      return base::Fail(base::Code::kNotFound, "execution.not_found", "no such execution");
    evidence::Execution execution;
    execution.execution_id = kExecution;
    execution.name = "train";
    return execution;
  }

  base::Result<DiagnoseOutcome> Do(const DiagnoseTask& task) override {
    DiagnoseOutcome outcome;
    v1::DiagnoseResult result;
    result.set_root_cause("What happened: " + task.execution.name + " failed.");
    outcome.answer = result.SerializeAsString();
    outcome.failure_class = "host_out_of_memory";
    outcome.cache_key = "key";
    return outcome;
  }
};

}  // namespace expanse::intelligence
