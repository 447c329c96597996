#include "schedulers/slurm/text/state.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

using evidence::ExecutionStatus;
using evidence::Outcome;

struct JobWord {
  std::string_view name;
  std::string_view compact;
  ExecutionStatus status;
  Outcome outcome;
  bool final;
  bool flag;  // stands beside a state; alone, in its place
};

// Flags come with the status that they mean where no state stands beside them: squeue shows the
// flag instead of the state.
constexpr std::array kJobWords = {
    JobWord{"PENDING", "PD", ExecutionStatus::kQueued, Outcome::kUnspecified, false, false},
    JobWord{"RUNNING", "R", ExecutionStatus::kRunning, Outcome::kUnspecified, false, false},
    JobWord{"SUSPENDED", "S", ExecutionStatus::kRunning, Outcome::kUnspecified, false, false},
    JobWord{"COMPLETED", "CD", ExecutionStatus::kSucceeded, Outcome::kSuccess, true, false},
    JobWord{"CANCELLED", "CA", ExecutionStatus::kCancelled, Outcome::kCancelled, true, false},
    JobWord{"FAILED", "F", ExecutionStatus::kFailed, Outcome::kFailure, true, false},
    JobWord{"TIMEOUT", "TO", ExecutionStatus::kFailed, Outcome::kTimeout, true, false},
    JobWord{"NODE_FAIL", "NF", ExecutionStatus::kFailed, Outcome::kFailure, true, false},
    // Not the job's doing and not its end as work: the scheduler took it off.
    JobWord{"PREEMPTED", "PR", ExecutionStatus::kCancelled, Outcome::kCancelled, true, false},
    JobWord{"BOOT_FAIL", "BF", ExecutionStatus::kFailed, Outcome::kFailure, true, false},
    JobWord{"DEADLINE", "DL", ExecutionStatus::kFailed, Outcome::kTimeout, true, false},
    JobWord{"OUT_OF_MEMORY", "OOM", ExecutionStatus::kFailed, Outcome::kOutOfMemory, true, false},
    JobWord{"COMPLETING", "CG", ExecutionStatus::kRunning, Outcome::kUnspecified, false, true},
    JobWord{"CONFIGURING", "CF", ExecutionStatus::kRunning, Outcome::kUnspecified, false, true},
    JobWord{"RESIZING", "RS", ExecutionStatus::kRunning, Outcome::kUnspecified, false, true},
    JobWord{"SIGNALING", "SI", ExecutionStatus::kRunning, Outcome::kUnspecified, false, true},
    JobWord{"STAGE_OUT", "SO", ExecutionStatus::kRunning, Outcome::kUnspecified, false, true},
    JobWord{"STOPPED", "ST", ExecutionStatus::kRunning, Outcome::kUnspecified, false, true},
    JobWord{"POWER_UP_NODE", "PU", ExecutionStatus::kRunning, Outcome::kUnspecified, false, true},
    // The next run waits already; sacct shows the word as the end of the run before.
    JobWord{"REQUEUED", "RQ", ExecutionStatus::kCancelled, Outcome::kCancelled, true, true},
    JobWord{"REQUEUE", "", ExecutionStatus::kCancelled, Outcome::kCancelled, true, true},
    JobWord{"REQUEUE_FED", "RF", ExecutionStatus::kQueued, Outcome::kUnspecified, false, true},
    JobWord{"REQUEUE_HOLD", "RH", ExecutionStatus::kQueued, Outcome::kUnspecified, false, true},
    JobWord{"SPECIAL_EXIT", "SE", ExecutionStatus::kQueued, Outcome::kUnspecified, false, true},
    JobWord{"RESV_DEL_HOLD", "RD", ExecutionStatus::kQueued, Outcome::kUnspecified, false, true},
    JobWord{"LAUNCH_FAILED", "LF", ExecutionStatus::kQueued, Outcome::kUnspecified, false, true},
    JobWord{"RECONFIG_FAIL", "", ExecutionStatus::kQueued, Outcome::kUnspecified, false, true},
    JobWord{"UPDATE_DB", "UD", ExecutionStatus::kUnspecified, Outcome::kUnspecified, false, true},
    JobWord{"EXPEDITING", "EX", ExecutionStatus::kQueued, Outcome::kUnspecified, false, true},
    // A federation's sibling runs it instead.
    JobWord{"REVOKED", "RV", ExecutionStatus::kCancelled, Outcome::kCancelled, true, true},
};

// `cut` words were shortened to a column's width; the first that begins so.
const JobWord* FindJobWord(std::string_view word, bool cut) {
  for (const JobWord& known : kJobWords) {
    if (known.name == word || (!known.compact.empty() && known.compact == word)) return &known;
  }
  if (!cut || word.size() < 4) return nullptr;
  for (const JobWord& known : kJobWords) {
    if (known.name.starts_with(word)) return &known;
  }
  return nullptr;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

bool Contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Adds one word of a state.
void AddJobWord(const JobWord& word, bool& has_state, JobState& state) {
  const bool replaces = !word.flag && !has_state;
  if (replaces && !state.name.empty()) state.flags.push_back(state.name);
  if (replaces || state.name.empty()) {
    state.name = word.name;
    state.status = word.status;
    state.outcome = word.outcome;
    state.final = word.final;
  } else if (state.name != word.name && !Contains(state.flags, word.name)) {
    state.flags.emplace_back(word.name);
  }
  has_state = has_state || !word.flag;
}

// What flags change in the meaning of the state.
void ApplyFlags(JobState& state) {
  for (std::string_view open : {"COMPLETING", "STAGE_OUT", "UPDATE_DB"}) {
    if (Contains(state.flags, open)) state.final = false;
  }
  // The node does not run it yet, or no more: PENDING with one of these has left the queue.
  if (state.name == "PENDING" &&
      (Contains(state.flags, "REQUEUED") || Contains(state.flags, "COMPLETING"))) {
    state.final = false;
  }
}

// ---- nodes

struct NodeWord {
  std::string_view word;
  std::string_view base;  // "" where the word is a flag only
  std::string_view flag;
};

constexpr std::array kNodeWords = {
    NodeWord{"ALLOCATED", "ALLOCATED", ""},
    NodeWord{"ALLOC", "ALLOCATED", ""},
    NodeWord{"MIXED", "MIXED", ""},
    NodeWord{"MIX", "MIXED", ""},
    NodeWord{"IDLE", "IDLE", ""},
    NodeWord{"DOWN", "DOWN", ""},
    NodeWord{"ERROR", "ERROR", ""},
    NodeWord{"ERR", "ERROR", ""},
    NodeWord{"FUTURE", "FUTURE", ""},
    NodeWord{"FUTR", "FUTURE", ""},
    NodeWord{"UNKNOWN", "UNKNOWN", ""},
    NodeWord{"UNK", "UNKNOWN", ""},
    NodeWord{"INVAL", "DOWN", "INVALID_REG"},
    NodeWord{"INVALID", "DOWN", "INVALID_REG"},
    // Words of sinfo that stand for a state and a flag.
    NodeWord{"DRAINED", "IDLE", "DRAIN"},
    NodeWord{"DRAINING", "ALLOCATED", "DRAIN"},
    NodeWord{"DRNG", "ALLOCATED", "DRAIN"},
    NodeWord{"FAILING", "ALLOCATED", "FAIL"},
    NodeWord{"FAILG", "ALLOCATED", "FAIL"},
    NodeWord{"ALLOC+", "ALLOCATED", "COMPLETING"},
    NodeWord{"NO_RESPOND", "", "NOT_RESPONDING"},
    NodeWord{"NPC", "", "PERFCTRS"},
    NodeWord{"PERFCTRS", "", "PERFCTRS"},
    NodeWord{"COMP", "", "COMPLETING"},
    NodeWord{"COMPLETING", "", "COMPLETING"},
    NodeWord{"PLND", "", "PLANNED"},
    NodeWord{"PLANNED", "", "PLANNED"},
    NodeWord{"RESV", "", "RESERVED"},
    NodeWord{"RESERVED", "", "RESERVED"},
    NodeWord{"MAINT", "", "MAINTENANCE"},
    NodeWord{"MAINTENANCE", "", "MAINTENANCE"},
    NodeWord{"BLOCK", "", "BLOCKED"},
    NodeWord{"BLOCKED", "", "BLOCKED"},
    NodeWord{"REBOOT", "", "REBOOT_REQUESTED"},
    NodeWord{"REBOOT^", "", "REBOOT_ISSUED"},
    NodeWord{"BOOT", "", "REBOOT_ISSUED"},
    NodeWord{"POW_DN", "", "POWER_DOWN"},
    NodeWord{"POWER_DOWN", "", "POWER_DOWN"},
    NodeWord{"POWERING_DOWN", "", "POWERING_DOWN"},
    NodeWord{"POWERED_DOWN", "", "POWERED_DOWN"},
    NodeWord{"POW_UP", "", "POWERING_UP"},
    NodeWord{"POWER_UP", "", "POWERING_UP"},
    NodeWord{"POWERING_UP", "", "POWERING_UP"},
    // scontrol of 20.11: a node that power saving has switched off.
    NodeWord{"POWER", "", "POWERED_DOWN"},
    NodeWord{"POWERING", "", "POWERING_UP"},
};

struct NodeMark {
  char mark;
  std::string_view flag;
};

// sinfo(1), "node state codes": the mark behind a word.
constexpr std::array kNodeMarks = {
    NodeMark{'*', "NOT_RESPONDING"},   NodeMark{'~', "POWERED_DOWN"},  NodeMark{'#', "POWERING_UP"},
    NodeMark{'!', "POWER_DOWN"},       NodeMark{'%', "POWERING_DOWN"}, NodeMark{'$', "MAINTENANCE"},
    NodeMark{'@', "REBOOT_REQUESTED"}, NodeMark{'^', "REBOOT_ISSUED"}, NodeMark{'-', "PLANNED"},
};

void AddNodeFlag(std::string_view flag, NodeState& state) {
  if (!flag.empty() && !Contains(state.flags, flag)) state.flags.emplace_back(flag);
}

// Takes the marks off the end of a word, and says which flags they are.
std::string_view TakeMarks(std::string_view word, NodeState& state) {
  while (!word.empty()) {
    const auto mark =
        std::find_if(kNodeMarks.begin(), kNodeMarks.end(),
                     [&](const NodeMark& known) { return known.mark == word.back(); });
    if (mark == kNodeMarks.end()) break;
    AddNodeFlag(mark->flag, state);
    word.remove_suffix(1);
  }
  return word;
}

void AddNodeWord(std::string_view word, NodeState& state) {
  for (const NodeWord& known : kNodeWords) {
    if (known.word != word) continue;
    if (state.base.empty()) state.base = known.base;
    AddNodeFlag(known.flag, state);
    return;
  }
  AddNodeFlag(word, state);  // DRAIN, FAIL, CLOUD, DYNAMIC_NORM, and what later versions add
}

bool Usable(const NodeState& state) {
  if (state.base != "IDLE" && state.base != "MIXED" && state.base != "ALLOCATED") return false;
  for (std::string_view flag :
       {"DRAIN", "FAIL", "NOT_RESPONDING", "MAINTENANCE", "POWERED_DOWN", "POWERING_DOWN",
        "POWER_DOWN", "REBOOT_ISSUED", "INVALID_REG", "BLOCKED"}) {
    if (state.Has(flag)) return false;
  }
  return true;
}

}  // namespace

JobState JobStateFromWords(std::span<const std::string_view> words) {
  JobState state;
  bool has_state = false;
  for (std::string_view word : words) {
    if (word.empty()) continue;
    if (const JobWord* known = FindJobWord(Upper(word), /*cut=*/false)) {
      AddJobWord(*known, has_state, state);
    } else if (state.name.empty()) {
      state.name = word;
    } else if (!Contains(state.flags, word)) {
      state.flags.emplace_back(word);
    }
  }
  ApplyFlags(state);
  return state;
}

JobState ParseJobState(std::string_view text) {
  text = base::Trim(text);
  std::optional<uid_t> cancelled_by;
  if (const std::size_t by = text.find(" by "); by != std::string_view::npos) {
    cancelled_by = base::ParseInt<uid_t>(base::Trim(text.substr(by + 4)));
    text = text.substr(0, by);
  }
  std::string whole;
  if (text.ends_with('+')) {
    text.remove_suffix(1);
    if (const JobWord* known = FindJobWord(Upper(text), /*cut=*/true)) {
      whole = known->name;
      text = whole;
    }
  }
  std::vector<std::string_view> words;
  while (!text.empty() && words.size() < 16) {
    const std::size_t end = text.find_first_of(" ,+|&");
    words.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  JobState state = JobStateFromWords(words);
  state.cancelled_by = cancelled_by;
  return state;
}

bool NodeState::Has(std::string_view flag) const { return Contains(flags, flag); }

NodeState ParseNodeState(std::string_view text) {
  NodeState state;
  const std::string upper = Upper(base::Trim(text.substr(0, 512)));
  if (upper == "ALLOCATED+" || upper == "ALLOC+" || upper == "REBOOT^") {
    AddNodeWord(upper == "ALLOCATED+" ? "ALLOC+" : upper, state);
  } else {
    for (std::string_view word : base::Split(upper, '+')) {
      word = TakeMarks(word, state);
      if (!word.empty()) AddNodeWord(word, state);
    }
  }
  // sinfo's words that are a flag and no state: the node is up and has no jobs of its own to show.
  if (state.base.empty() && !state.flags.empty()) {
    state.base = state.Has("COMPLETING") ? "ALLOCATED" : "IDLE";
  }
  state.usable = Usable(state);
  return state;
}

}  // namespace expanse::schedulers::slurm
