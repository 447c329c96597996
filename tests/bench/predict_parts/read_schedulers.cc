// Traces of batch schedulers: sacct in its forms, tables made of it, the Slurm simulator's events,
// the Standard Workload Format.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_map>

#include "base/text.h"
#include "bench/predict_parts/fields.h"
#include "bench/predict_parts/trace.h"

namespace expanse::bench {
namespace {

using intelligence::predict::Ending;

constexpr double kKiB = 1024.0;
constexpr double kMiB = 1024.0 * kKiB;
constexpr double kGiB = 1024.0 * kMiB;

std::optional<double> NotZero(std::optional<double> value) {
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<Ending> SlurmEnding(std::string_view state) {
  if (state.starts_with("COMPLETED")) return Ending::kSuccess;
  if (state.starts_with("FAILED")) return Ending::kFailure;
  if (state.starts_with("TIMEOUT")) return Ending::kTimeout;
  if (state.starts_with("OUT_OF_ME")) return Ending::kOutOfMemory;
  if (state.starts_with("CANCELLED")) return Ending::kCancelled;
  if (state.starts_with("NODE_FAIL") || state.starts_with("PREEMPTED"))
    return Ending::kInfrastructure;
  return std::nullopt;
}

// sacct's ReqMem: "4G", "100Mc" per core, "250Gn" per node.
std::optional<double> RequestedMemory(std::string_view text, double cores, double nodes) {
  double factor = 1;
  if (text.ends_with('c')) factor = cores;
  if (text.ends_with('n')) factor = nodes;
  if (text.ends_with('c') || text.ends_with('n')) text.remove_suffix(1);
  const auto amount = NotZero(Amount(text));
  if (!amount) return std::nullopt;
  return *amount * factor;
}

// A job's row, and those of its steps, share what comes before the dot.
struct Job {
  TraceRun run;
  bool whole = false;  // the job's own row was seen
};

std::string Header(std::string_view text) {
  // Twelve or thirteen fields without a header: the order of the tool that wrote them.
  const auto fields = SplitFields(text.substr(0, text.find('\n')), '|');
  const bool numbered = !fields.empty() && !fields[0].empty() && base::IsDigit(fields[0][0]);
  if (!numbered || (fields.size() != 12 && fields.size() != 13) || !SlurmEnding(fields[3]))
    return "";
  return "JobID|User|Account|State|Partition|AllocCPUS|ReqMem|TotalCPU|Elapsed|MaxRSS|ExitCode|"
         "NNodes|NTasks\n";
}

std::optional<double> Elapsed(const Table& table, std::size_t row, double cores) {
  if (const auto raw = Number(table.At(row, "ElapsedRaw"))) return raw;
  if (const auto text = Duration(table.At(row, "Elapsed"))) return text;
  if (const auto cpu = Number(table.At(row, "CPUTimeRAW"))) return *cpu / cores;
  return std::nullopt;
}

std::string GroupOf(const Table& table, std::size_t row) {
  const std::string_view user = table.At(row, "User");
  const std::string_view name = table.At(row, "JobName");
  if (!user.empty() || !name.empty()) return std::string(user) + "/" + std::string(name);
  return std::string(table.At(row, "Partition")) + "/" + std::string(table.At(row, "ReqCPUS"));
}

// The job's own row. Nothing is kept of one that has not ended.
void TakeJobRow(const Table& table, std::size_t row, Job& job) {
  const auto ending = SlurmEnding(table.At(row, "State"));
  auto cores = NotZero(Number(table.At(row, "AllocCPUS")));
  if (!cores) cores = NotZero(Number(table.At(row, "ReqCPUS")));
  const char* const node_column = table.Has("NNodes") ? "NNodes" : "ReqNodes";
  const double nodes = NotZero(Number(table.At(row, node_column))).value_or(1);
  const auto elapsed = Elapsed(table, row, cores.value_or(1));
  if (!ending || !elapsed) return;
  job.whole = true;
  TraceRun& run = job.run;
  run.ending = *ending;
  run.cores = cores.value_or(1);
  run.runtime_s = *elapsed;
  run.submit_s = Moment(table.At(row, "Submit")).value_or(0);
  run.end_s = Moment(table.At(row, "End")).value_or(run.submit_s + *elapsed);
  run.requested_memory_bytes = RequestedMemory(table.At(row, "ReqMem"), run.cores, nodes);
  if (const auto minutes = NotZero(Number(table.At(row, "TimelimitRaw"))))
    run.requested_walltime_s = *minutes * 60;
  else
    run.requested_walltime_s = NotZero(Duration(table.At(row, "Timelimit")));
  run.group = GroupOf(table, row);
}

}  // namespace

Runs ReadSacct(std::string_view given) {
  const std::string text = Header(given) + std::string(given);
  const Table table(text, '|');
  if (!table.Has("State") || !table.Has("ReqMem")) return std::nullopt;
  const bool ids = table.Has("JobID");
  if (!table.Has("Elapsed") && !table.Has("ElapsedRaw") && !table.Has("CPUTimeRAW"))
    return std::nullopt;
  std::vector<Job> jobs;
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const std::string_view id = table.At(i, "JobID");
    const std::string key(id.substr(0, id.find('.')));
    std::size_t at = jobs.size();
    if (ids) at = index.try_emplace(key, jobs.size()).first->second;
    if (at == jobs.size()) jobs.emplace_back();
    Job& job = jobs[at];
    const double tasks = NotZero(Number(table.At(i, "NTasks"))).value_or(1);
    if (const auto rss = NotZero(Amount(table.At(i, "MaxRSS"))))
      job.run.memory_bytes = std::max(job.run.memory_bytes.value_or(0), *rss * tasks);
    const bool step = id.find('.') != std::string_view::npos;
    if (!step) TakeJobRow(table, i, job);
  }
  std::vector<TraceRun> runs;
  for (Job& job : jobs) {
    if (job.whole) runs.push_back(std::move(job.run));
  }
  return runs;
}

namespace {

using Json = nlohmann::json;

// Slurm's {"set": true, "infinite": false, "number": 5} or a plain number.
std::optional<double> SlurmNumber(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_object() || !value.value("set", false) || value.value("infinite", false))
    return std::nullopt;
  const auto number = value.find("number");
  return number != value.end() && number->is_number() ? std::optional(number->get<double>())
                                                      : std::nullopt;
}
const Json& At(const Json& value, std::initializer_list<const char*> path) {
  static const Json kNull;
  const Json* at = &value;
  for (const char* key : path) {
    if (!at->is_object()) return kNull;
    const auto found = at->find(key);
    if (found == at->end()) return kNull;
    at = &*found;
  }
  return *at;
}
double TresCount(const Json& list, std::string_view type) {
  double most = 0;
  if (!list.is_array()) return 0;
  for (const Json& entry : list) {
    const Json& count = At(entry, {"count"});
    if (At(entry, {"type"}) == type && count.is_number())
      most = std::max(most, count.get<double>());
  }
  return most;
}

std::optional<TraceRun> JsonJob(const Json& job) {
  const Json& state = At(job, {"state", "current"});
  const std::string text = state.is_array() && !state.empty() && state[0].is_string()
                               ? state[0].get<std::string>()
                               : (state.is_string() ? state.get<std::string>() : "");
  const auto ending = SlurmEnding(text);
  const auto elapsed = SlurmNumber(At(job, {"time", "elapsed"}));
  if (!ending || !elapsed) return std::nullopt;
  TraceRun run;
  run.ending = *ending;
  run.runtime_s = *elapsed;
  run.submit_s = SlurmNumber(At(job, {"time", "submission"})).value_or(0);
  run.end_s = SlurmNumber(At(job, {"time", "end"})).value_or(run.submit_s + *elapsed);
  if (const auto minutes = NotZero(SlurmNumber(At(job, {"time", "limit"}))))
    run.requested_walltime_s = *minutes * 60;
  const Json& requested = At(job, {"tres", "requested"});
  run.cores = std::max(1.0, TresCount(requested, "cpu"));
  if (const double mib = TresCount(requested, "mem"); mib > 0)
    run.requested_memory_bytes = mib * kMiB;
  for (const Json& step : At(job, {"steps"})) {
    const double bytes = TresCount(At(step, {"tres", "requested", "max"}), "mem");
    const double tasks = SlurmNumber(At(step, {"tasks", "count"})).value_or(1);
    if (bytes > 0)
      run.memory_bytes = std::max(run.memory_bytes.value_or(0), bytes * std::max(tasks, 1.0));
  }
  const Json& user = At(job, {"association", "user"});
  const Json& name = At(job, {"name"});
  run.group = (user.is_string() ? user.get<std::string>() : "") + "/" +
              (name.is_string() ? name.get<std::string>() : "");
  return run;
}

}  // namespace

Runs ReadSacctJson(std::string_view text) {
  const auto document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json& jobs = At(document, {"jobs"});
  if (!jobs.is_array()) return std::nullopt;
  std::vector<TraceRun> runs;
  for (const Json& job : jobs) {
    if (auto run = JsonJob(job)) runs.push_back(std::move(*run));
  }
  return runs;
}

namespace {

// What ran, of a cluster's accounting.
std::vector<TraceRun> AccountedJobs(const Table& table) {
  std::vector<TraceRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto ending = SlurmEnding(table.At(i, "state"));
    const auto runtime = Number(table.At(i, "run_time"));
    const auto submit = Moment(table.At(i, "submit_time"));
    if (!ending || !runtime || !submit) continue;
    TraceRun run;
    run.ending = *ending;
    run.runtime_s = *runtime;
    run.submit_s = *submit;
    run.end_s = Moment(table.At(i, "end_time")).value_or(*submit + *runtime);
    run.cores = NotZero(Number(table.At(i, "processors_req"))).value_or(1);
    run.requested_walltime_s = NotZero(Number(table.At(i, "wallclock_req")));
    run.group = std::string(table.At(i, "user")) + "/" + std::string(table.At(i, "name"));
    runs.push_back(std::move(run));
  }
  return runs;
}

// What a simulator is to run.
std::vector<TraceRun> SimulatedJobs(const Table& table) {
  std::vector<TraceRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto runtime = Number(table.At(i, "sim_duration"));
    const auto submit = Number(table.At(i, "sim_submit_ts"));
    if (!runtime || !submit) continue;
    TraceRun run;
    run.runtime_s = *runtime;
    run.submit_s = *submit;
    run.end_s = *submit + *runtime;
    run.cores = NotZero(Number(table.At(i, "sim_tasks"))).value_or(1) *
                NotZero(Number(table.At(i, "sim_cpus_per_task"))).value_or(1);
    if (const auto minutes = NotZero(Number(table.At(i, "sim_wclimit"))))
      run.requested_walltime_s = *minutes * 60;
    run.group = std::string(table.At(i, "sim_username"));
    if (run.requested_walltime_s && run.runtime_s >= *run.requested_walltime_s)
      run.ending = Ending::kTimeout;
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

Runs ReadJobTable(std::string_view text) {
  const Table table(text, Table::Separator(text));
  if (table.Has("wallclock_req") && table.Has("run_time")) return AccountedJobs(table);
  if (table.Has("sim_wclimit") && table.Has("sim_duration")) return SimulatedJobs(table);
  return std::nullopt;
}

Runs ReadMeasuredTable(std::string_view text) {
  const Table table(text, Table::Separator(text));
  if (!table.Has("Time") || !table.Has("RAM_usage")) return std::nullopt;
  const std::string_view assigned =
      table.Has("Memory_asigned") ? "Memory_asigned" : "Memory asigned (GB)";
  std::vector<TraceRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto runtime = Duration(table.At(i, "Time"));
    const auto used = NotZero(Number(table.At(i, "RAM_usage")));
    if (!runtime || !used) continue;
    TraceRun run;
    run.group = std::string(table.At(i, "Caller"));
    run.same_source = true;
    run.runtime_s = *runtime;
    run.cores = NotZero(Number(table.At(i, "CPU_asigned"))).value_or(1);
    run.memory_bytes = *used * kGiB;
    if (const auto gib = NotZero(Number(table.At(i, assigned))))
      run.requested_memory_bytes = *gib * kGiB;
    run.input_size = NotZero(Number(table.At(i, "Sequencing_deph")));
    runs.push_back(std::move(run));
  }
  return runs;
}

namespace {

// One submit line of the Slurm simulator.
std::optional<TraceRun> EventRun(std::string_view line) {
  const auto words = base::SplitSpaces(line);
  TraceRun run;
  std::string_view user;
  double nodes = 1;
  bool timed = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view next = i + 1 < words.size() ? words[i + 1] : std::string_view();
    if (word == "-dt") run.submit_s = Number(next).value_or(0);
    if (word == "-sim-walltime") {
      const auto seconds = Number(next);
      timed = seconds && *seconds >= 0;
      run.runtime_s = seconds.value_or(0);
    }
    if (word.starts_with("--uid=")) user = word.substr(6);
    if (word == "-N") nodes = NotZero(Number(next)).value_or(1);
    if (word == "-n") run.cores = NotZero(Number(next)).value_or(1);
    if (word == "-t") run.requested_walltime_s = NotZero(Duration(next));
    if (word.starts_with("--mem=")) run.requested_memory_bytes = NotZero(Amount(word.substr(6)));
  }
  if (!timed || user.empty()) return std::nullopt;
  if (run.requested_memory_bytes) *run.requested_memory_bytes *= nodes;
  run.group = std::string(user);
  run.end_s = run.submit_s + run.runtime_s;
  if (run.requested_walltime_s && run.runtime_s >= *run.requested_walltime_s)
    run.ending = Ending::kTimeout;
  return run;
}

// The fields of the Standard Workload Format that tell something here, by their place.
enum Swf : std::uint8_t {
  kSubmit = 1,
  kWait = 2,
  kRunTime = 3,
  kProcessors = 4,
  kMemory = 6,  // KiB a processor
  kProcessorsAsked = 7,
  kTimeAsked = 8,
  kMemoryAsked = 9,
  kStatus = 10,
  kUser = 11,
  kExecutable = 13,
  kSwfFields = 18
};

std::optional<TraceRun> SwfRun(std::span<const double> value) {
  const double status = value[kStatus];
  TraceRun run;
  run.submit_s = value[kSubmit];
  run.runtime_s = value[kRunTime];
  // 2 to 4: a part of a job, not its end.
  if (run.runtime_s < 0 || (status >= 2 && status <= 4)) return std::nullopt;
  run.end_s = value[kSubmit] + std::max(value[kWait], 0.0) + value[kRunTime];
  run.cores = value[kProcessors] > 0 ? value[kProcessors] : std::max(value[kProcessorsAsked], 1.0);
  if (value[kMemory] > 0) run.memory_bytes = value[kMemory] * kKiB * run.cores;
  if (value[kTimeAsked] > 0) run.requested_walltime_s = value[kTimeAsked];
  if (value[kMemoryAsked] > 0) run.requested_memory_bytes = value[kMemoryAsked] * kKiB * run.cores;
  run.ending = status == 0 ? Ending::kFailure : status == 5 ? Ending::kCancelled : Ending::kSuccess;
  if (status == 0 && run.requested_walltime_s && run.runtime_s >= *run.requested_walltime_s)
    run.ending = Ending::kTimeout;
  return run;
}

}  // namespace

Runs ReadSlurmEvents(std::string_view text) {
  if (!text.starts_with("-dt")) return std::nullopt;
  std::vector<TraceRun> runs;
  for (const std::string_view line : base::Split(text, '\n')) {
    if (auto run = EventRun(line)) runs.push_back(std::move(*run));
  }
  return runs;
}

Runs ReadSwf(std::string_view text) {
  std::vector<TraceRun> runs;
  for (const std::string_view line : base::Split(text, '\n')) {
    const std::string_view trimmed = base::Trim(line);
    if (trimmed.empty() || trimmed.starts_with(';')) continue;
    const auto fields = base::SplitSpaces(trimmed);
    if (fields.size() < kSwfFields) return std::nullopt;
    double value[kSwfFields];
    for (std::size_t i = 0; i < kSwfFields; ++i) {
      const auto number = Number(fields[i]);
      if (!number) return std::nullopt;
      value[i] = *number;
    }
    auto run = SwfRun(value);
    if (!run) continue;
    run->group = std::string(fields[kUser]) + "/" + std::string(fields[kExecutable]);
    runs.push_back(std::move(*run));
  }
  return runs;
}

}  // namespace expanse::bench
