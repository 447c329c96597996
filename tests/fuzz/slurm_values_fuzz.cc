// Slurm's small spellings: ids, times, amounts, states, TRES and GRES, output patterns, versions.
// The first byte chooses the parser.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "schedulers/slurm/job.h"
#include "schedulers/slurm/text/job_id.h"
#include "schedulers/slurm/text/output_path.h"
#include "schedulers/slurm/text/state.h"
#include "schedulers/slurm/text/tres.h"
#include "schedulers/slurm/text/values.h"
#include "schedulers/slurm/text/version.h"

using namespace expanse;
using namespace expanse::schedulers::slurm;

namespace {

void CheckTimes(std::string_view text) {
  if (const auto elapsed = ParseElapsed(text)) EXPANSE_CHECK(elapsed->count() >= 0);
  if (const auto limit = ParseTimeLimit(text)) EXPANSE_CHECK(limit->limit.count() >= 0);
  if (const auto time = ParseTimestamp(text)) {
    EXPANSE_CHECK(time->time_since_epoch() > std::chrono::hours(48));
  }
}

void CheckAmounts(std::string_view text) {
  if (const auto memory = ParseMemory(text, kMebibyte)) {
    (void)TotalBytes(*memory, 1U << 20, 1U << 16);
  }
  (void)ParseCount(text);
  if (const auto exit = ParseExitCode(text)) EXPANSE_CHECK(exit->signal >= 0);
  (void)ParseVersion(text);
}

void CheckIds(std::string_view text) {
  if (const auto id = ParseJobId(text)) EXPANSE_CHECK(id->job_id != 0);
  (void)ParseArrayTasks(text);
  (void)IsSluid(text);
  if (const auto run = ParseIdentity(text)) {
    EXPANSE_CHECK(ParseIdentity(MakeKey(run->cluster, run->job_id, run->submitted).identity));
  }
}

void CheckStates(std::string_view text) {
  const JobState state = ParseJobState(text);
  EXPANSE_CHECK(!state.final || evidence::IsTerminal(state.status));
  const NodeState node = ParseNodeState(text);
  EXPANSE_CHECK(!node.usable || !node.base.empty());
}

void CheckPath(std::string_view text) {
  const OutputPath path = ExpandOutputPath(text, {.job_id = 7, .working_directory = "/w"});
  EXPANSE_CHECK(path.kind != OutputPath::Kind::kFile || path.path.starts_with('/'));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 8192) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 6) {
    case 0:
      CheckTimes(text);
      break;
    case 1:
      CheckAmounts(text);
      break;
    case 2:
      CheckIds(text);
      break;
    case 3:
      CheckStates(text);
      break;
    case 4:
      (void)ResourcesFromTres(text);
      (void)ParseTresUsage(text);
      (void)GpusOf(ParseGres(text));
      break;
    default:
      CheckPath(text);
  }
  return 0;
}
