#include "schedulers/slurm/node/hook_event.h"

#include <sys/wait.h>

#include <algorithm>

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::string_view kMagic = "expanse-hook 1";
constexpr std::string_view kMagicOfAnyVersion = "expanse-hook ";
constexpr std::string_view kEnd = "end";
constexpr std::size_t kMostGpus = 1024;

std::unexpected<base::Error> Malformed(std::string_view what) {
  return base::Fail(base::Code::kInvalidArgument, "hook.malformed", std::string(what));
}

// Slurm's way to write "none" into a number of 32 bits (NO_VAL and INFINITE, slurm.h).
constexpr std::uint32_t kFirstNoValue = 0xffff'fffe;

std::optional<std::uint32_t> Number(std::string_view text) {
  const auto value = base::ParseInt<std::uint32_t>(text);
  return value && *value < kFirstNoValue ? value : std::nullopt;
}

std::optional<base::WallTime> EpochSeconds(std::string_view text) {
  const auto value = Number(text);
  if (!value || *value == 0) return std::nullopt;
  return base::WallTime(std::chrono::seconds(*value));
}

// "3:0" or "0:9": exit code and signal (SLURM_JOB_EXIT_CODE2).
void TakeExitPair(std::string_view text, HookEvent& event) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return;
  const auto code = base::ParseInt<std::int32_t>(text.substr(0, colon));
  const auto signal = base::ParseInt<std::int32_t>(text.substr(colon + 1));
  if (!code || !signal) return;
  event.exit_code = code;
  event.signal.reset();
  if (*signal > 0) event.signal = signal;
}

// What wait(2) returned (SLURM_JOB_EXIT_CODE); the pair says the same, and more.
void TakeWaitStatus(std::string_view text, HookEvent& event) {
  const auto status = base::ParseInt<std::int32_t>(text);
  if (!status || event.exit_code) return;
  if (WIFSIGNALED(*status)) {
    event.exit_code = 0;
    event.signal = WTERMSIG(*status);
  } else if (WIFEXITED(*status)) {
    event.exit_code = WEXITSTATUS(*status);
  }
}

void TakeVariable(std::string_view name, std::string_view value, HookEvent& event) {
  const auto is = [&](std::string_view variable) { return name == variable; };
  if (is("SLURM_JOB_ID")) {
    event.job_id = Number(value).value_or(0);
  } else if (is("SLURM_JOB_SLUID")) {
    event.sluid = value;
  } else if (is("SLURM_JOB_UID")) {
    event.uid = Number(value);
  } else if (is("SLURM_JOB_USER")) {
    event.user = value;
  } else if (is("SLURM_CLUSTER_NAME")) {
    event.cluster = value;
  } else if (is("SLURMD_NODENAME")) {
    event.node = value;
  } else if (is("SLURM_JOB_PARTITION")) {
    event.partition = value;
  } else if (is("SLURM_JOB_NODELIST")) {
    event.node_list = value;
  } else if (is("SLURM_ARRAY_JOB_ID")) {
    event.array_job_id = Number(value);
  } else if (is("SLURM_ARRAY_TASK_ID")) {
    event.array_task_id = Number(value);
  } else if (is("SLURM_HET_JOB_ID")) {
    event.het_job_id = Number(value);
  } else if (is("SLURM_HET_JOB_OFFSET")) {
    event.het_offset = Number(value);
  } else if (is("SLURM_JOB_RESTART_COUNT") || is("SLURM_RESTART_COUNT")) {
    event.restart_count = Number(value);
  } else if (is("SLURM_JOB_EXIT_CODE2")) {
    TakeExitPair(value, event);
  } else if (is("SLURM_JOB_EXIT_CODE")) {
    TakeWaitStatus(value, event);
  } else if (is("SLURM_JOB_START_TIME")) {
    event.started_at = EpochSeconds(value);
  } else if (is("SLURM_JOB_GPUS")) {
    event.job_gpus = value;
  } else if (is("CUDA_VISIBLE_DEVICES")) {
    event.visible_devices = value;
  }
}

// The next field, without its NUL, off the front of `bytes`; false when there is no whole one.
bool NextField(std::string_view& bytes, std::string_view& field) {
  const auto end = bytes.find('\0');
  if (end == std::string_view::npos) return false;
  field = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return true;
}

bool IsUuidOfGpu(std::string_view text) {
  return text.starts_with("GPU-") || text.starts_with("MIG-");
}

}  // namespace

base::Result<HookEvent> ParseHookEvent(std::string_view bytes) {
  if (bytes.size() > kMaxHookEvent) return Malformed("larger than any event");
  std::string_view field;
  if (!NextField(bytes, field)) {
    return base::Fail(base::Code::kDataLoss, "hook.torn", "the event is not complete");
  }
  if (field != kMagic) {
    if (!field.starts_with(kMagicOfAnyVersion)) return Malformed("not a hook event");
    return base::Fail(base::Code::kUnimplemented, "hook.version", "made by another version's hook");
  }
  HookEvent event;
  bool kind_known = false;
  bool ended = false;
  while (!ended && NextField(bytes, field)) {
    if (field == kEnd) {
      ended = true;
    } else if (field == "prolog" || field == "epilog") {
      event.kind = field == "prolog" ? HookKind::kProlog : HookKind::kEpilog;
      kind_known = true;
    } else if (const auto equals = field.find('='); equals != std::string_view::npos) {
      // A variable that is not set is written all the same, as one that is empty.
      if (equals + 1 < field.size())
        TakeVariable(field.substr(0, equals), field.substr(equals + 1), event);
    } else {
      return Malformed("a field is neither a variable nor the end");
    }
  }
  if (!ended) return base::Fail(base::Code::kDataLoss, "hook.torn", "the event is not complete");
  if (!bytes.empty()) return Malformed("bytes behind the end");
  if (!kind_known) return Malformed("neither Prolog nor Epilog");
  if (event.job_id == 0) return Malformed("no job id");
  if (event.kind == HookKind::kProlog) {
    event.exit_code.reset();
    event.signal.reset();
  }
  return event;
}

std::vector<std::string> GrantedGpuUuids(const HookEvent& event) {
  std::vector<std::string> uuids;
  for (const std::string* list : {&event.job_gpus, &event.visible_devices}) {
    if (!uuids.empty()) break;
    for (std::string_view item : base::Split(*list, ',')) {
      item = base::Trim(item);
      if (!IsUuidOfGpu(item) || uuids.size() >= kMostGpus) continue;
      if (std::ranges::find(uuids, item) == uuids.end()) uuids.emplace_back(item);
    }
  }
  return uuids;
}

std::optional<std::vector<std::uint32_t>> GrantedGpuNumbers(const HookEvent& event) {
  if (event.job_gpus.empty()) return std::nullopt;
  std::vector<std::uint32_t> numbers;
  for (std::string_view item : base::Split(event.job_gpus, ',')) {
    item = base::Trim(item);
    const auto dash = item.find('-');
    const auto first = base::ParseInt<std::uint32_t>(item.substr(0, dash));
    const auto last = dash == std::string_view::npos
                          ? first
                          : base::ParseInt<std::uint32_t>(item.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMostGpus - numbers.size()) {
      return std::nullopt;
    }
    for (std::uint32_t number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace expanse::schedulers::slurm
