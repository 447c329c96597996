#include "store/runs/memory_labels_testing.h"

#include <algorithm>
#include <set>

namespace expanse::store {

base::Status MemoryLabels::Put(const FailureLabel& label) {
  const std::scoped_lock lock(mutex_);
  FailureLabel& kept = labels_[{label.organisation_id, label.execution_id}];
  if (!kept.execution_id.empty() && kept.diagnosed_at > label.diagnosed_at) return {};
  kept = label;
  if (kept.nodes.size() > kMostNodes) kept.nodes.resize(kMostNodes);
  std::ranges::sort(kept.nodes);
  return {};
}

base::Status MemoryLabels::Drop(std::string_view organisation_id, std::string_view execution_id) {
  const std::scoped_lock lock(mutex_);
  labels_.erase({std::string(organisation_id), std::string(execution_id)});
  return {};
}

base::Result<std::vector<FailureLabel>> MemoryLabels::Get(
    std::string_view organisation_id, const std::vector<std::string>& execution_ids) {
  const std::scoped_lock lock(mutex_);
  std::vector<FailureLabel> found;
  for (const std::string& id : std::set(execution_ids.begin(), execution_ids.end())) {
    const auto label = labels_.find({std::string(organisation_id), id});
    if (label != labels_.end()) found.push_back(label->second);
  }
  return found;
}

base::Result<std::vector<NodeFailures>> MemoryLabels::NodeHistory(const NodeQuery& query) {
  const std::scoped_lock lock(mutex_);
  std::vector<const FailureLabel*> recent;
  std::set<std::string> all_nodes;
  for (const auto& [place, label] : labels_) {
    if (label.organisation_id == query.organisation_id && label.compute_id == query.compute_id &&
        label.ended_at >= query.ended_from && label.ended_at <= query.ended_to &&
        label.nodes.size() == 1) {
      all_nodes.insert(label.nodes.front());
      if (label.workload != query.without_workload) recent.push_back(&label);
    }
  }
  std::map<std::pair<std::string, std::string>, NodeFailures> counted;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> users;
  std::map<std::string, std::uint32_t> of_class;
  for (const FailureLabel* label : recent) {
    ++of_class[label->failure_class];
    for (const std::string& node : std::set(query.nodes.begin(), query.nodes.end())) {
      if (std::ranges::find(label->nodes, node) == label->nodes.end()) continue;
      const std::pair key(node, label->failure_class);
      counted[key].node = node;
      counted[key].failure_class = label->failure_class;
      ++counted[key].executions;
      if (!label->user.empty()) users[key].insert(label->user);
    }
  }
  std::vector<NodeFailures> found;
  for (auto& [key, node] : counted) {
    if (node.executions < query.least_executions || users[key].size() < query.least_users) continue;
    node.users = static_cast<std::uint32_t>(users[key].size());
    node.elsewhere = of_class[node.failure_class] - node.executions;
    node.other_nodes =
        static_cast<std::uint32_t>(std::min(all_nodes.size() - 1, LabelStore::kMostOthers));
    found.push_back(node);
  }
  return found;
}

base::Result<std::size_t> MemoryLabels::DropBefore(base::WallTime diagnosed_before,
                                                   std::size_t limit) {
  const std::scoped_lock lock(mutex_);
  std::size_t gone = 0;
  for (auto it = labels_.begin(); it != labels_.end() && gone < limit;) {
    const bool old = it->second.diagnosed_at < diagnosed_before;
    gone += old ? 1 : 0;
    it = old ? labels_.erase(it) : std::next(it);
  }
  return gone;
}

void MemoryLabels::ForgetRun(const std::string& run_id) {
  const std::scoped_lock lock(mutex_);
  for (auto& [place, label] : labels_) {
    if (label.run_id == run_id) label.run_id.clear();
  }
}

base::Result<FeedPlace> MemoryDiagnosisQueue::Place() {
  const std::scoped_lock lock(mutex_);
  return place_;
}

base::Status MemoryDiagnosisQueue::Follow(std::span<const DiagnosisChange> changes,
                                          const FeedPlace& next, base::WallTime now) {
  const std::scoped_lock lock(mutex_);
  for (const DiagnosisChange& change : changes) {
    const ExecutionPlace place(change.organisation_id, change.execution_id);
    if (!change.due) {
      waiting_.erase(place);
      if (change.removed)
        EXPANSE_RETURN_IF_ERROR(labels_.Drop(change.organisation_id, change.execution_id));
      continue;
    }
    const auto [entry, added] =
        waiting_.try_emplace(place, Entry{.diagnosis = {.organisation_id = change.organisation_id,
                                                        .execution_id = change.execution_id},
                                          .due_at = *change.due});
    ++entry->second.diagnosis.version;
    entry->second.diagnosis.tries = 0;
    entry->second.diagnosis.changed_at = now;
    entry->second.due_at = std::min(entry->second.due_at, *change.due);
  }
  place_ = next;
  return {};
}

base::Status MemoryDiagnosisQueue::StartOver() {
  const std::scoped_lock lock(mutex_);
  waiting_.clear();
  place_ = {};
  return {};
}

std::map<ExecutionPlace, MemoryDiagnosisQueue::Entry>::iterator MemoryDiagnosisQueue::Longest() {
  return std::ranges::min_element(waiting_, {},
                                  [](const auto& entry) { return entry.second.due_at; });
}

base::Result<std::optional<DueDiagnosis>> MemoryDiagnosisQueue::Take(base::WallTime now,
                                                                     base::WallTime lease) {
  const std::scoped_lock lock(mutex_);
  const auto longest = Longest();
  if (longest == waiting_.end() || longest->second.due_at > now)
    return std::optional<DueDiagnosis>();
  Entry& entry = longest->second;
  ++entry.diagnosis.version;
  ++entry.diagnosis.tries;
  entry.due_at = lease;
  return std::optional(entry.diagnosis);
}

base::Status MemoryDiagnosisQueue::Finish(const DueDiagnosis& taken,
                                          std::optional<base::WallTime> next, bool succeeded) {
  const std::scoped_lock lock(mutex_);
  const auto entry = waiting_.find({taken.organisation_id, taken.execution_id});
  if (entry == waiting_.end() || entry->second.diagnosis.version != taken.version) return {};
  if (!next) {
    waiting_.erase(entry);
    return {};
  }
  entry->second.due_at = *next;
  if (succeeded) entry->second.diagnosis.tries = 0;
  return {};
}

base::Result<std::size_t> MemoryDiagnosisQueue::Waiting() {
  const std::scoped_lock lock(mutex_);
  return waiting_.size();
}

base::Result<std::optional<base::WallTime>> MemoryDiagnosisQueue::NextDue() {
  const std::scoped_lock lock(mutex_);
  const auto longest = Longest();
  if (longest == waiting_.end()) return std::optional<base::WallTime>();
  return std::optional(longest->second.due_at);
}

}  // namespace expanse::store
