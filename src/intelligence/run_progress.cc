#include "intelligence/run_progress.h"

#include "base/log.h"

namespace expanse::intelligence {

using base::Code;

bool UserSlots::Enter(const std::string& user_id) {
  const std::scoped_lock lock(mutex_);
  std::size_t& used = used_[user_id];
  if (used >= per_user_) return false;
  ++used;
  return true;
}

void UserSlots::Leave(const std::string& user_id) {
  const std::scoped_lock lock(mutex_);
  const auto found = used_.find(user_id);
  if (found != used_.end() && --found->second == 0) used_.erase(found);
}

std::string_view StatusOf(const base::Error& error) {
  if (error.code == Code::kInvalidArgument || error.code == Code::kNotFound) return "refused";
  return error.reason == "run.overloaded" || error.reason.starts_with("run.queue_") ? "shed"
                                                                                    : "failed";
}

std::string MessageOf(const base::Error& error) {
  const bool inside = error.code == Code::kInternal || error.code == Code::kUnknown ||
                      error.code == Code::kDataLoss;
  if (!inside) return error.message;
  base::LogError("intelligence.run", {{"reason", error.reason}, {"error", error.message}});
  return "the server could not work on this; its log says why";
}

void KeepFailure(store::RunStore& runs, store::RunRow run, const base::Error& error) {
  run.status = store::RunStatus::kFailed;
  run.error = MessageOf(error);
  run.error_reason = error.reason;
  if (const auto kept = runs.Add(run, {}); !kept)
    base::LogError("intelligence.run",
                   {{"reason", kept.error().reason}, {"error", kept.error().message}});
}

}  // namespace expanse::intelligence
