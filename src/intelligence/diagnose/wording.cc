#include "intelligence/diagnose/wording.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/bytes.h"
#include "base/text.h"
#include "intelligence/diagnose/facts.h"
#include "intelligence/diagnose/log_lines.h"
#include "intelligence/diagnose/request_lines.h"

namespace expanse::intelligence::diagnose {
namespace {

constexpr std::size_t kMaxQuote = 240;
constexpr double kNearLimit = 0.95;

std::string Amount(double bytes) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  if (bytes < kGiB) return base::FormatBytes({static_cast<std::uint64_t>(std::llround(bytes))});
  const auto tenths = static_cast<std::int64_t>(std::llround(bytes / kGiB * 10));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

std::string Duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds)));
  if (whole < 120) return std::to_string(whole) + " s";
  if (whole < 7200) return std::to_string(whole / 60) + " min";
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  return std::to_string(hours) + " h" + (minutes > 0 ? " " + std::to_string(minutes) + " min" : "");
}

// Measurements come from files of others: what is no amount is not known.
bool IsAmount(const std::optional<double>& value) {
  return value && std::isfinite(*value) && *value >= 0 && *value < 1e18;
}

void Put(Values* values, const char* name, const std::string& value) {
  if (!value.empty()) (*values)[name] = value;
}
void PutAmount(Values* values, const char* name, const std::optional<double>& bytes) {
  if (IsAmount(bytes)) (*values)[name] = Amount(*bytes);
}
void PutWhole(Values* values, const char* name, const std::optional<double>& number,
              const char* unit = "") {
  if (IsAmount(number)) (*values)[name] = std::to_string(std::llround(*number)) + unit;
}
void PutDuration(Values* values, const char* name, const std::optional<double>& seconds) {
  if (IsAmount(seconds)) (*values)[name] = Duration(*seconds);
}

// Whole characters, no more than kMaxQuote bytes, exactly as in the evidence.
std::string Quote(const std::string& text) {
  std::string_view quote = base::Trim(text);
  if (quote.size() <= kMaxQuote) return std::string(quote);
  std::size_t end = kMaxQuote;
  while (end > 0 && (static_cast<unsigned char>(quote[end]) & 0xc0) == 0x80) --end;
  return std::string(quote.substr(0, end));
}

// Facts are worded by us: no output says them.
bool IsFact(const Item& item) {
  const auto& names = Facts::Names();
  return std::find(names.begin(), names.end(), item.where) != names.end();
}

const Mark* BestText(const Finding& finding, const Ledger& ledger) {
  const Mark* best = nullptr;
  for (const Mark& mark : finding.marks) {
    if (mark.origin != Origin::kText && mark.origin != Origin::kEvent) continue;
    if (IsFact(ledger[mark.item])) continue;
    if (best == nullptr || mark.strength > best->strength) best = &mark;
  }
  return best;
}

void PutCaptures(const Runbook& runbook, const std::string& text, Values* values) {
  LogLine line;
  StripLine(text, &line);
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  for (const Signature& signature : runbook.signatures) {
    const re2::RE2 pattern(signature.pattern, options);
    const int groups = std::min(pattern.NumberOfCapturingGroups(), 3);
    std::array<re2::StringPiece, 4> found;
    if (!pattern.Match(line.message, 0, line.message.size(), re2::RE2::UNANCHORED, found.data(),
                       groups + 1))
      continue;
    for (int group = 1; group <= groups; ++group) {
      const re2::StringPiece& piece = found[static_cast<std::size_t>(group)];
      if (!piece.empty())
        (*values)["capture" + std::to_string(group)] = std::string(piece.data(), piece.size());
    }
    return;
  }
}

void PutSimilar(const Case& of, Values* values) {
  std::optional<double> peak;
  std::optional<double> runtime;
  std::size_t successes = 0;
  for (const SimilarRun& similar : of.similar) {
    if (similar.run.ending != predict::Ending::kSuccess) continue;
    ++successes;
    if (similar.run.memory_peak_bytes)
      peak = std::max(peak.value_or(0), *similar.run.memory_peak_bytes);
    if (similar.run.runtime_s) runtime = std::max(runtime.value_or(0), *similar.run.runtime_s);
  }
  if (successes == 0) return;
  (*values)["similar_successes"] = std::to_string(successes);
  PutAmount(values, "similar_peak", peak);
  PutDuration(values, "similar_runtime", runtime);
  const auto& limit = of.snapshot.host_ram_requested_bytes;
  if (peak && limit)
    PutAmount(values, *peak > *limit ? "similar_peak_above" : "similar_peak_below", peak);
  const auto& walltime = of.snapshot.walltime_s;
  if (runtime && walltime) {
    PutDuration(values, *runtime > *walltime ? "similar_runtime_above" : "similar_runtime_below",
                runtime);
  }
}

// A peak is exact where the kernel itself kept it for the whole cgroup.
bool PeakIsExact(const Case& of) {
  const evidence::Usage& used = of.execution.used;
  return used.memory_peak_basis == "cgroup_peak" && used.memory_peak_bytes &&
         static_cast<double>(*used.memory_peak_bytes) >=
             0.99 * of.snapshot.host_ram_observed_peak_bytes.value_or(0);
}

void PutMemory(const Case& of, Values* values) {
  const auto& peak = of.snapshot.host_ram_observed_peak_bytes;
  const auto& limit = of.snapshot.host_ram_requested_bytes;
  PutAmount(values, "memory_limit", limit);
  PutAmount(values, "memory_peak", peak);
  PutAmount(values, PeakIsExact(of) ? "memory_peak_exact" : "memory_peak_sampled", peak);
  if (!peak || !limit || *limit <= 0) return;
  PutWhole(values, "memory_share", *peak / *limit * 100, " %");
  if (*peak <= 0.5 * *limit) PutAmount(values, "memory_peak_low", peak);
}

void PutOptions(const Known& known, Values* values) {
  using workload::Quantity;
  static constexpr std::array<std::pair<Quantity, const char*>, 5> kNames = {
      {{Quantity::kMemory, "memory_option"},
       {Quantity::kWalltime, "walltime_option"},
       {Quantity::kGpu, "gpu_option"},
       {Quantity::kCpu, "cpu_option"},
       {Quantity::kTasks, "tasks_option"}}};
  for (const auto& [quantity, name] : kNames) {
    const auto written = known.facts.requests().find(quantity);
    Put(values, name,
        written == known.facts.requests().end()
            ? std::string(OptionOf(known.of.execution.source_type, quantity))
            : written->second.option);
  }
}

// How the script hides a failure, and what failure the output ends with.
void PutHidden(const Known& known, Values* values) {
  if (const Fact* hidden = known.facts.Find("masks_exit"); hidden != nullptr && hidden->item) {
    const Item& item = known.ledger[*hidden->item];
    Put(values, "hidden_how", hidden->words.front());
    Put(values, "hidden_line", Quote(item.text));
    Put(values, "hidden_where", item.where);
  }
  const Fact* end = known.facts.Find("ends_in_failure");
  if (end == nullptr || end->words.empty()) return;
  (*values)["end_class"] = end->words.front();
  if (const Runbook* runbook = known.runbooks.Find(end->words.front()))
    (*values)["end_title"] = runbook->title;
}

// What shows it beside the line that is quoted, the strongest first.
void PutShown(const Finding& finding, const Ledger& ledger, const Mark* quoted, Values* values) {
  constexpr std::size_t kMost = 3;
  std::vector<Mark> marks;
  for (const Mark& mark : finding.marks) {
    if (quoted != nullptr && mark.item == quoted->item) continue;
    const bool counts = mark.origin == Origin::kScheduler || mark.origin == Origin::kExit ||
                        mark.origin == Origin::kMetric || mark.origin == Origin::kEvent;
    const bool repeated = std::any_of(marks.begin(), marks.end(), [&](const Mark& other) {
      return ledger[other.item].text == ledger[mark.item].text;
    });
    if (counts && !repeated) marks.push_back(mark);
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.strength > b.strength; });
  std::string shown;
  for (std::size_t index = 0; index < marks.size() && index < kMost; ++index)
    shown += (index == 0 ? "" : "; ") + Quote(ledger[marks[index].item].text);
  Put(values, "shown", shown);
}

// The file that a message names: '…', "…" or between colons.
void PutPath(const std::string& text, Values* values) {
  static const re2::RE2 pattern(
      "'((?:/|\\./|~/)[^']{1,200})'|\"((?:/|\\./|~/)[^\"]{1,200})\"|"
      ": ((?:/|\\./|~/)[^:\\s]{1,200})(?:: |$)|(?:^|\\s)((?:/|\\./|~/)[^:\\s]{1,200}): ",
      re2::RE2::Latin1);
  std::array<re2::StringPiece, 5> found;
  const re2::StringPiece piece(text);
  if (!pattern.Match(piece, 0, piece.size(), re2::RE2::UNANCHORED, found.data(), 5)) return;
  for (std::size_t group = 1; group < found.size(); ++group)
    if (!found[group].empty()) (*values)["path"] = std::string(found[group]);
}

// Whether the limit of memory was reached: whoever ended the run says so, or the peak is there.
void PutMemoryEnd(const Snapshot& seen, const Finding& finding, Values* values) {
  const auto& peak = seen.host_ram_observed_peak_bytes;
  const auto& limit = seen.host_ram_requested_bytes;
  const bool is_near = peak && limit && *peak >= kNearLimit * *limit;
  if (is_near || finding.best == Strength::kDecisive) {
    PutAmount(values, "memory_limit_hit", limit);
    PutAmount(values, "memory_peak_at_limit", peak);
  } else if (limit) {
    PutAmount(values, "memory_peak_below", peak);
  }
}

void PutWhoCancelled(const Known& known, Values* values) {
  const Fact* by = known.facts.Find("cancelled_by");
  if (by == nullptr || by->words.empty()) return;
  const auto uid = known.of.execution.labels.find("slurm.cancelled_by");
  std::string who = by->words.front() == "user" ? "its own user" : "another user";
  if (uid != known.of.execution.labels.end())
    who += uid->second == "0" ? " (root)" : " (uid " + uid->second + ")";
  (*values)["cancelled_by"] = std::move(who);
}

std::string Joined(const std::vector<std::string>& words, std::size_t most) {
  std::string text;
  for (std::size_t index = 0; index < words.size() && index < most; ++index)
    text += (index == 0 ? "" : ", ") + words[index];
  if (words.size() > most) text += " and " + std::to_string(words.size() - most) + " more";
  return text;
}

}  // namespace

std::string SignalName(int signal) {
  static constexpr std::array<std::pair<int, const char*>, 14> kNames = {{{1, "SIGHUP"},
                                                                          {2, "SIGINT"},
                                                                          {3, "SIGQUIT"},
                                                                          {4, "SIGILL"},
                                                                          {6, "SIGABRT"},
                                                                          {7, "SIGBUS"},
                                                                          {8, "SIGFPE"},
                                                                          {9, "SIGKILL"},
                                                                          {10, "SIGUSR1"},
                                                                          {11, "SIGSEGV"},
                                                                          {12, "SIGUSR2"},
                                                                          {13, "SIGPIPE"},
                                                                          {15, "SIGTERM"},
                                                                          {24, "SIGXCPU"}}};
  for (const auto& [number, name] : kNames)
    if (number == signal) return name;
  return "signal " + std::to_string(signal);
}

Values ValuesOf(const Known& known, const Finding& finding,
                const std::vector<Finding>& alternatives) {
  Values values;
  const Snapshot& seen = known.of.snapshot;
  const evidence::Execution& run = known.of.execution;
  PutMemory(known.of, &values);
  PutMemoryEnd(seen, finding, &values);
  PutOptions(known, &values);
  PutHidden(known, &values);
  PutDuration(&values, "runtime", seen.runtime_s);
  PutDuration(&values, "walltime", seen.walltime_s);
  PutDuration(&values, "idle", seen.idle_tail_s);
  if (run.exit_code) values["exit_code"] = std::to_string(*run.exit_code);
  std::optional<int> signal = run.signal;
  if ((!signal || *signal == 0) && run.exit_code && *run.exit_code > 128 && *run.exit_code < 193)
    signal = *run.exit_code - 128;
  if (signal && *signal != 0) {
    values["signal"] = std::to_string(*signal);
    values["signal_name"] = SignalName(*signal);
  }
  PutWhoCancelled(known, &values);
  Put(&values, "state", run.native_state);
  Put(&values, "reason", run.native_reason);
  Put(&values, "queue", run.queue);
  Put(&values, "scheduler", std::string(Name(run.source_type)));
  Put(&values, "nodes", Joined(run.nodes, 4));
  Put(&values, "gpu_type", seen.gpu_type);
  PutWhole(&values, "gpu_count", seen.gpu_count);
  PutAmount(&values, "gpu_memory", seen.gpu_memory_available_bytes);
  PutAmount(&values, "gpu_memory_peak", seen.gpu_memory_observed_bytes);
  PutWhole(&values, "gpu_utilisation", seen.gpu_utilisation_pct, " %");
  PutWhole(&values, "cpus", seen.cpu_requested);
  // None may mean that the last look came before the kill.
  if (run.used.oom_kills && *run.used.oom_kills > 0)
    values["oom_kills"] = std::to_string(*run.used.oom_kills);
  if (run.restart_count > 0) values["restarts"] = std::to_string(run.restart_count);
  PutSimilar(known.of, &values);
  const Mark* quoted = BestText(finding, known.ledger);
  PutShown(finding, known.ledger, quoted, &values);
  values[finding.best == Strength::kDecisive ? "decisive"
         : finding.best == Strength::kStrong ? "strong"
                                             : "weak"] = "yes";
  for (const Finding& other : alternatives)
    values["also_" + known.runbooks.runbooks()[other.runbook].id] = "yes";
  if (quoted != nullptr) {
    const Item& item = known.ledger[quoted->item];
    values["quote"] = Quote(item.text);
    values["quoted_from"] = item.origin == Origin::kText ? "output" : item.where + "'s record";
    Put(&values, "node", item.node);
    if (item.rank) values["rank"] = std::to_string(*item.rank);
    PutPath(values["quote"], &values);
    PutCaptures(known.runbooks.runbooks()[finding.runbook], item.text, &values);
  }
  return values;
}

std::string Fill(std::string_view text, const Values& values) {
  struct Optional {
    std::size_t start = 0;
    bool missing = false;
  };
  std::string result;
  std::vector<Optional> open;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("[[")) {
      open.push_back({.start = result.size()});
      at += 2;
      continue;
    }
    if (!open.empty() && rest.starts_with("]]")) {
      if (open.back().missing) result.resize(open.back().start);
      open.pop_back();
      at += 2;
      continue;
    }
    const std::size_t close = rest.front() == '{' ? rest.find('}') : std::string_view::npos;
    if (close == std::string_view::npos) {
      result.push_back(text[at++]);
      continue;
    }
    std::string_view name = rest.substr(1, close - 1);
    const bool condition = name.starts_with('?') || name.starts_with('!');
    const bool negated = name.starts_with('!');
    if (condition) name.remove_prefix(1);
    const auto value = values.find(name);
    const bool missing = (value == values.end()) != negated;
    if (missing && !open.empty()) open.back().missing = true;
    if (!condition) result += value == values.end() ? "unknown" : value->second;
    at += close + 1;
  }
  while (!open.empty()) {  // never closed
    if (open.back().missing) result.resize(open.back().start);
    open.pop_back();
  }
  return result;
}

}  // namespace expanse::intelligence::diagnose
