#include "schedulers/host/run_record.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/crypto.h"
#include "collect/logs/redact.h"
#include "evidence/wire.h"

namespace expanse::schedulers::host {
namespace {

std::string WorkingDirectory() {
  char* path = ::get_current_dir_name();
  if (path == nullptr) return "";
  std::string out(path);
  std::free(path);
  return out;
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

double Seconds(const struct timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::string NativeId(std::string_view run_id) {
  // Crockford's base 32 in lower case: no letters that are taken for digits.
  static constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  const std::string digest = base::Sha256(run_id);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 5; ++i) bits = bits << 8 | static_cast<unsigned char>(digest[i]);
  std::string id = "run-";
  for (int i = 7; i >= 0; --i) id += kAlphabet[bits >> (5 * i) & 31];
  return id;
}

evidence::Execution DescribeRun(const RunOptions& options, std::string_view run_id,
                                base::WallTime started_at, const std::vector<FileTail>& files) {
  evidence::Execution execution;
  execution.source_type = evidence::SourceType::kHost;
  execution.native_id = NativeId(run_id);
  const std::string& program = options.command.front();
  execution.name = options.name.empty() ? program.substr(program.rfind('/') + 1) : options.name;
  execution.command = options.command;
  execution.comment = options.comment;
  execution.working_directory = WorkingDirectory();
  execution.nodes = {HostName()};
  execution.status = evidence::ExecutionStatus::kRunning;
  execution.native_state = "running";
  execution.submitted_at = started_at;
  execution.started_at = started_at;
  execution.updated_at = started_at;
  execution.requested.node_count = 1;
  if (options.memory_limit) {
    execution.requested.memory_bytes = options.memory_limit->count;
    execution.allocated.memory_bytes = options.memory_limit->count;
  }
  if (options.walltime) {
    execution.requested.walltime_s =
        std::chrono::ceil<std::chrono::seconds>(*options.walltime).count();
  }
  execution.allocated.node_count = 1;
  for (const FileTail& file : files) {
    if (file.name() != "stderr") execution.stdout_path = file.path();
    if (file.name() != "stdout") execution.stderr_path = file.path();
  }
  return execution;
}

evidence::Usage UsageOf(const RunEnd& end) {
  evidence::Usage usage;
  usage.cpu_user_s = Seconds(end.usage.ru_utime);
  usage.cpu_system_s = Seconds(end.usage.ru_stime);
  usage.cpu_s = *usage.cpu_user_s + *usage.cpu_system_s;
  const std::uint64_t rss = static_cast<std::uint64_t>(end.usage.ru_maxrss) << 10;
  if (rss > 0) {
    usage.memory_peak_bytes = rss;
    usage.memory_peak_basis = "rusage";
  }
  if (!end.cgroup) return usage;
  const collect::CgroupUsage& cgroup = *end.cgroup;
  if (cgroup.cpu_s) {
    usage.cpu_s = cgroup.cpu_s;
    usage.cpu_user_s = cgroup.cpu_user_s;
    usage.cpu_system_s = cgroup.cpu_system_s;
  }
  if (cgroup.memory_peak_bytes) {
    // At the end little may be left of the cache that made the peak: a scratch file is deleted.
    const std::uint64_t cache =
        std::max(end.cache_peak_bytes, cgroup.memory_file_bytes.value_or(0));
    const bool mostly_need = cache <= *cgroup.memory_peak_bytes / 50;
    usage.memory_peak_bytes =
        mostly_need ? *cgroup.memory_peak_bytes : std::max(end.need_peak_bytes, rss);
    usage.memory_peak_basis = mostly_need                  ? "cgroup_peak"
                              : end.need_peak_bytes >= rss ? "sampled"
                                                           : "rusage";
  }
  usage.io_read_bytes = cgroup.io_read_bytes;
  usage.io_write_bytes = cgroup.io_write_bytes;
  usage.oom_kills = cgroup.oom_kills;
  return usage;
}

void DescribeEnd(const RunEnd& end, evidence::Execution& execution) {
  const Verdict& verdict = end.verdict;
  execution.status = verdict.status;
  execution.outcome = verdict.outcome;
  execution.exit_code = verdict.exit_code;
  execution.signal = verdict.signal;
  execution.native_state = verdict.native_state;
  execution.native_reason = verdict.native_reason;
  // A clock that was set back must not make a run end before it began.
  execution.ended_at = std::max(end.ended_at, execution.started_at.value_or(end.ended_at));
  execution.updated_at = execution.ended_at;
  execution.used = UsageOf(end);
  execution.capture_notes.insert(execution.capture_notes.end(), verdict.notes.begin(),
                                 verdict.notes.end());
}

evidence::Record ExecutionRecord(evidence::Execution execution, base::WallTime at) {
  return {.sequence = 1,
          .observed_at = at,
          .payload = evidence::ExecutionObservation{
              {evidence::SourceType::kHost, execution.native_id}, std::move(execution)}};
}

void RedactExecution(SpoolEvent& event) {
  for (evidence::Record& record : event.records) {
    auto* observation = std::get_if<evidence::ExecutionObservation>(&record.payload);
    if (observation == nullptr) continue;
    evidence::Execution& execution = observation->execution;
    std::uint32_t count = 0;
    execution.command = collect::RedactArguments(execution.command, &count);
    for (std::string* text : {&execution.name, &execution.comment})
      *text = collect::Redact(*text).text;
    execution = evidence::FitLimits(std::move(execution));
  }
}

void AddTails(const std::vector<NamedTail>& tails, std::string_view run_id, base::WallTime at,
              bool final, SpoolEvent& event) {
  for (const NamedTail& named : tails) {
    if (named.ring.total_bytes() == 0) continue;
    evidence::LogTail tail = named.ring.Snapshot(final);
    tail.key = {evidence::SourceType::kHost, std::string(run_id)};
    tail.stream = named.name;
    event.records.push_back({.sequence = 1, .observed_at = at, .payload = std::move(tail)});
  }
}

}  // namespace expanse::schedulers::host
