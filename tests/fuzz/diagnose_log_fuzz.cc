// Whatever a job prints, and whatever its script and the kernel say beside it: the diagnosis ends,
// is the same each time, quotes nothing that is not there, and shows nothing that acts on a
// terminal. The input is a byte that chooses how the run stands, then output, second stream, script
// and event, each ended by the byte 0x1e.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "intelligence/diagnose/agent_prompt.h"
#include "intelligence/diagnose/diagnose.h"
#include "intelligence/diagnose/log_lines.h"

using namespace expanse;
using namespace expanse::intelligence::diagnose;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

const RunbookSet& Set() {
  static const auto set = *RunbookSet::Create(RunbookSet::Embedded(), RunbookSet::EmbeddedDecoys());
  return *set;
}

std::string_view Take(std::string_view* rest) {
  const std::size_t end = std::min(rest->find('\x1e'), rest->size());
  const std::string_view part = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return part;
}

Case CaseOf(std::uint8_t choice, std::string_view rest) {
  constexpr std::array kStatus = {
      evidence::ExecutionStatus::kFailed, evidence::ExecutionStatus::kSucceeded,
      evidence::ExecutionStatus::kCancelled, evidence::ExecutionStatus::kRunning};
  constexpr std::array kSource = {evidence::SourceType::kSlurm, evidence::SourceType::kKubernetes,
                                  evidence::SourceType::kNomad, evidence::SourceType::kHost};
  Case of;
  of.execution.execution_id = "e";
  of.execution.status = kStatus[choice % 4U];
  of.execution.source_type = kSource[choice / 4U % 4U];
  if ((choice & 16U) != 0) of.execution.exit_code = 1;
  if ((choice & 32U) != 0) of.execution.native_state = "OUT_OF_MEMORY";
  if ((choice & 64U) != 0) {
    of.snapshot.host_ram_observed_peak_bytes = 23.9 * (1U << 30U);
    of.snapshot.host_ram_requested_bytes = 24.0 * (1U << 30U);
  }
  of.logs.push_back({.stream = "stderr", .data = std::string(Take(&rest))});
  const std::string_view second = Take(&rest);
  const std::string_view script = Take(&rest);
  if (!second.empty())
    of.logs.push_back({.stream = "stdout", .data = {}, .first_error = std::string(second)});
  if (!script.empty())
    of.sources.push_back({.path = "job.sh", .role = "script", .data = std::string(script)});
  if (!rest.empty()) of.events.push_back({.source = "kernel", .text = std::string(Take(&rest))});
  return of;
}

void CheckReduced(std::string_view text) {
  const Reduced reduced = ReduceLog(text, /*most=*/64);
  Check(reduced.lines.size() <= 64);
  std::size_t before = 0;
  for (const LogLine& line : reduced.lines) {
    Check(line.raw.data() >= text.data());
    Check(line.raw.data() + line.raw.size() <= text.data() + text.size());
    Check(line.message.size() <= kMaxMessage + 1);
    Check(line.number > before && line.last >= line.number && line.last <= reduced.total_lines);
    before = line.number;
  }
}

bool IsThere(const Case& of, const CitedEvidence& cited) {
  const auto holds = [&](const std::string& text) {
    return text.find(cited.quote) != std::string::npos;
  };
  if (cited.origin == "log") {
    return std::any_of(of.logs.begin(), of.logs.end(), [&](const LogText& log) {
      return holds(log.data) || holds(log.first_error);
    });
  }
  if (cited.origin == "source")
    return std::any_of(of.sources.begin(), of.sources.end(),
                       [&](const SourceText& source) { return holds(source.data); });
  return true;  // worded by us, or an event as it came
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const Case of =
      CaseOf(data[0], std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  for (const LogText& log : of.logs) CheckReduced(log.data);
  const Diagnosis said = Diagnose(of, Set());
  for (const CitedEvidence& cited : said.evidence) {
    Check(cited.quote.size() <= kMaxItemText);
    Check(IsThere(of, cited));
  }
  Check(said.failure_class.empty() == said.agent_prompt.empty());
  Check(said.agent_prompt.size() <= kMaxPrompt);
  for (const char c : said.agent_prompt) Check(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  const Diagnosis again = Diagnose(of, Set());
  Check(again.root_cause == said.root_cause && again.agent_prompt == said.agent_prompt);
  return 0;
}
