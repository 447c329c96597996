#include "schedulers/slurm/job.h"

#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "base/text.h"
#include "collect/logs/redact.h"

namespace expanse::schedulers::slurm {
namespace {

std::int64_t EpochSeconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

}  // namespace

evidence::ExecutionKey MakeKey(std::string_view cluster, std::uint32_t job_id,
                               base::WallTime submitted) {
  return {.source_type = evidence::SourceType::kSlurm,
          .identity = fmt::format("{}/{}@{}", cluster, job_id, EpochSeconds(submitted))};
}

std::optional<evidence::ExecutionKey> KeyOf(const Job& job) {
  if (job.cluster.empty() || job.job_id == 0 || !job.submitted) return std::nullopt;
  return MakeKey(job.cluster, job.job_id, *job.submitted);
}

std::optional<RunIdentity> ParseIdentity(std::string_view identity) {
  const std::size_t slash = identity.rfind('/');
  const std::size_t at = identity.rfind('@');
  if (slash == 0 || slash == std::string_view::npos || at == std::string_view::npos || at < slash) {
    return std::nullopt;
  }
  const std::string_view id = identity.substr(slash + 1, at - slash - 1);
  const auto job_id = base::ParseInt<std::uint32_t>(id);
  const auto seconds = base::ParseUnsignedDigits(identity.substr(at + 1));
  // 12 digits: no overflow in microseconds, and nothing real is later.
  if (!job_id || *job_id == 0 || !seconds || identity.size() - at - 1 > 12) return std::nullopt;
  return RunIdentity{.cluster = std::string(identity.substr(0, slash)),
                     .job_id = *job_id,
                     .submitted = base::WallTime(std::chrono::seconds(*seconds))};
}

void RedactTexts(evidence::Execution& execution) {
  std::vector<std::string*> texts = {&execution.name, &execution.comment,
                                     &execution.working_directory, &execution.stdout_path,
                                     &execution.stderr_path};
  for (std::string& word : execution.command) texts.push_back(&word);
  const auto admin_comment = execution.labels.find(std::string(kLabelAdminComment));
  if (admin_comment != execution.labels.end()) texts.push_back(&admin_comment->second);
  // One search for all of them: nearly never is there anything, and each costs some microseconds.
  std::string all;
  for (const std::string* text : texts) all.append(*text).append("\n");
  if (collect::FindSecrets(all).empty()) return;
  for (std::string* text : texts) *text = collect::Redact(*text).text;
}

}  // namespace expanse::schedulers::slurm
