#include "schedulers/slurm/commands/scontrol_config.h"

#include <map>

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

// "Key   = value" lines; the first of each key, since sections of plugins follow.
std::map<std::string_view, std::string_view> Lines(std::string_view text) {
  std::map<std::string_view, std::string_view> values;
  for (const std::string_view line : base::Split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = base::Trim(line.substr(0, equals));
    std::string_view value = base::Trim(line.substr(equals + 1));
    if (value == "(null)" || value == "N/A") value = {};
    values.emplace(key, value);
  }
  return values;
}

// "300 sec", "300"
std::optional<std::chrono::seconds> Seconds(std::string_view text) {
  const auto words = base::SplitSpaces(text);
  if (words.empty()) return std::nullopt;
  const auto seconds = base::ParseInt<std::uint32_t>(words[0]);
  return seconds ? std::optional(std::chrono::seconds(*seconds)) : std::nullopt;
}

// "slurm(64030)"
void TakeUser(std::string_view text, SlurmConfig& config) {
  const std::size_t open = text.rfind('(');
  config.slurm_user = text.substr(0, open);
  if (open == std::string_view::npos || !text.ends_with(')')) return;
  config.slurm_uid = base::ParseInt<std::uint32_t>(text.substr(open + 1, text.size() - open - 2));
}

}  // namespace

base::Result<SlurmConfig> ParseSlurmConfig(std::string_view text) {
  const auto lines = Lines(text);
  const auto get = [&](std::string_view key) {
    const auto found = lines.find(key);
    return found == lines.end() ? std::string_view() : found->second;
  };
  SlurmConfig config;
  config.cluster = get("ClusterName");
  if (config.cluster.empty()) {
    return base::Fail(base::Code::kFailedPrecondition, "slurm.config",
                      "`scontrol show config` names no cluster (ClusterName in slurm.conf)");
  }
  config.version = get("SLURM_VERSION");
  // "SlurmctldHost[0] = head(10.0.0.1)"
  for (int i = 0; i < 16; ++i) {
    const std::string_view host = get("SlurmctldHost[" + std::to_string(i) + "]");
    if (host.empty()) break;
    config.controllers.emplace_back(host.substr(0, host.find('(')));
  }
  config.state_save_location = get("StateSaveLocation");
  TakeUser(get("SlurmUser"), config);
  config.prolog = get("Prolog").empty() ? get("Prolog[0]") : get("Prolog");
  config.epilog = get("Epilog").empty() ? get("Epilog[0]") : get("Epilog");
  config.task_prolog = get("TaskProlog");
  config.prolog_flags = get("PrologFlags");
  config.select_type = get("SelectType");
  config.proctrack_type = get("ProctrackType");
  config.job_acct_gather_type = get("JobAcctGatherType");
  config.accounting_storage_type = get("AccountingStorageType");
  config.accounting_storage_tres = get("AccountingStorageTRES");
  config.min_job_age = Seconds(get("MinJobAge"));
  config.max_job_id = base::ParseInt<std::uint32_t>(get("MaxJobId"));
  config.max_array_size = base::ParseInt<std::uint32_t>(get("MaxArraySize"));
  return config;
}

}  // namespace expanse::schedulers::slurm
