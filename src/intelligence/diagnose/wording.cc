#include "intelligence/diagnose/wording.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/bytes.h"
#include "base/text.h"
#include "intelligence/diagnose/log_lines.h"

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

void Put(Values* values, const char* name, const std::string& value) {
  if (!value.empty()) (*values)[name] = value;
}
void PutAmount(Values* values, const char* name, const std::optional<double>& bytes) {
  if (bytes) (*values)[name] = Amount(*bytes);
}
void PutWhole(Values* values, const char* name, const std::optional<double>& number,
              const char* unit = "") {
  if (number) (*values)[name] = std::to_string(std::llround(*number)) + unit;
}
void PutDuration(Values* values, const char* name, const std::optional<double>& seconds) {
  if (seconds) (*values)[name] = Duration(*seconds);
}

// Whole characters, no more than kMaxQuote bytes, exactly as in the evidence.
std::string Quote(const std::string& text) {
  std::string_view quote = base::Trim(text);
  if (quote.size() <= kMaxQuote) return std::string(quote);
  std::size_t end = kMaxQuote;
  while (end > 0 && (static_cast<unsigned char>(quote[end]) & 0xc0) == 0x80) --end;
  return std::string(quote.substr(0, end));
}

const Mark* BestText(const Finding& finding) {
  const Mark* best = nullptr;
  for (const Mark& mark : finding.marks) {
    if (mark.origin != Origin::kText && mark.origin != Origin::kEvent) continue;
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

Values ValuesOf(const Case& of, const Finding& finding, const RunbookSet& runbooks,
                const Ledger& ledger) {
  Values values;
  const Snapshot& seen = of.snapshot;
  const evidence::Execution& run = of.execution;
  PutAmount(&values, "memory_limit", seen.host_ram_requested_bytes);
  PutAmount(&values, "memory_peak", seen.host_ram_observed_peak_bytes);
  if (seen.host_ram_observed_peak_bytes && seen.host_ram_requested_bytes &&
      *seen.host_ram_requested_bytes > 0)
    PutWhole(&values, "memory_share",
             *seen.host_ram_observed_peak_bytes / *seen.host_ram_requested_bytes * 100, " %");
  PutMemoryEnd(seen, finding, &values);
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
  PutSimilar(of, &values);
  if (const Mark* mark = BestText(finding); mark != nullptr) {
    const Item& item = ledger[mark->item];
    values["quote"] = Quote(item.text);
    Put(&values, "node", item.node);
    if (item.rank) values["rank"] = std::to_string(*item.rank);
    PutCaptures(runbooks.runbooks()[finding.runbook], item.text, &values);
  }
  return values;
}

std::string Fill(std::string_view text, const Values& values) {
  std::string result;
  std::size_t optional_start = 0;
  bool in_optional = false;
  bool missing = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("[[")) {
      in_optional = true;
      missing = false;
      optional_start = result.size();
      at += 2;
      continue;
    }
    if (in_optional && text.substr(at).starts_with("]]")) {
      if (missing) result.resize(optional_start);
      in_optional = false;
      at += 2;
      continue;
    }
    const std::size_t close = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    if (close == std::string_view::npos) {
      result.push_back(text[at++]);
      continue;
    }
    const auto value = values.find(text.substr(at + 1, close - at - 1));
    if (value != values.end()) {
      result += value->second;
    } else {
      missing = true;
      result += "unknown";
    }
    at = close + 1;
  }
  if (in_optional && missing) result.resize(optional_start);
  return result;
}

}  // namespace expanse::intelligence::diagnose
