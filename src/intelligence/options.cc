#include "intelligence/options.h"

namespace expanse::intelligence {
namespace {

using base::SettingKind;
using base::SettingSpec;

constexpr double kDay = 86'400;

SettingSpec Count(std::string name, std::string value, std::string help, double min, double max) {
  return {.name = std::move(name),
          .kind = SettingKind::kInt,
          .default_value = std::move(value),
          .help = std::move(help),
          .min = min,
          .max = max};
}

SettingSpec Time(std::string name, std::string value, std::string help, double min, double max) {
  return {.name = std::move(name),
          .kind = SettingKind::kDuration,
          .default_value = std::move(value),
          .help = std::move(help),
          .min = min,
          .max = max};
}

}  // namespace

std::vector<SettingSpec> IntelligenceSettings() {
  return {
      Count("intelligence.workers", "4", "Threads that work on questions.", 1, 256),
      Count("intelligence.queue_workers", "2", "How many of them the queue may take at a time.", 1,
            256),
      Count("intelligence.backlog", "64",
            "Questions that may wait for a thread; further ones are refused.", 1, 100'000),
      Count("intelligence.running_per_user", "4",
            "Questions of one user that are worked on at a time, and as many of their queued runs.",
            1, 1000),
      Count("intelligence.queued_per_user", "100", "Runs of one user that may wait in the queue.",
            1, 100'000),
      Count("intelligence.queued", "1000", "Runs of all users that may wait in the queue.", 1, 1e6),
      Time("intelligence.run_timeout", "30s", "How long one run may take.", 1, 600),
      Count("intelligence.target_chance_pct", "95",
            "Chance to complete that a recommendation must clear, in percent.", 50, 99),
      {.name = "intelligence.auto_diagnose",
       .kind = SettingKind::kBool,
       .default_value = "true",
       .help = "Diagnose failed executions before anybody asks."},
      Count("intelligence.auto_diagnose_workers", "1", "How many of these at a time.", 1, 64),
      Time("intelligence.auto_diagnose_settle", "5s",
           "How long to wait for the last of the evidence after an execution changed.", 0, 600),
      Time("intelligence.auto_diagnose_age", "7d",
           "Only of executions that ended no longer ago than this.", 60, 3650 * kDay),
      Count("intelligence.auto_diagnose_runs", "10000",
            "How many of these diagnoses are kept of an organisation; 0 sets no bound.", 0, 1e7),
      {.name = "intelligence.runbook_directory",
       .kind = SettingKind::kPath,
       .help = "Runbooks of your own (*.yaml) over those of the program."},
      Time("intelligence.runbook_poll", "5s", "How often that directory is looked at.", 1, 3600),
      Time("intelligence.keep_runs", "90d",
           "How long runs and their artefacts are kept; 0 keeps them for ever.", 0, 36500 * kDay),
      Count("intelligence.runs_per_user", "1000",
            "How many runs of one user are kept; 0 sets no bound.", 0, 1e7),
      Time("intelligence.retention_interval", "1h", "How often old runs are removed.", 10,
           30 * kDay),
  };
}

IntelligenceOptions IntelligenceOptionsFrom(const base::Settings& settings) {
  const auto count = [&](std::string_view name) {
    return static_cast<std::size_t>(settings.GetInt(name));
  };
  IntelligenceOptions options;
  options.workers = count("intelligence.workers");
  options.queue_workers = count("intelligence.queue_workers");
  options.backlog = count("intelligence.backlog");
  options.running_per_user = count("intelligence.running_per_user");
  options.queued_per_user = count("intelligence.queued_per_user");
  options.queued = count("intelligence.queued");
  options.run_timeout = settings.GetDuration("intelligence.run_timeout");
  options.target_chance =
      static_cast<double>(settings.GetInt("intelligence.target_chance_pct")) / 100;
  options.auto_diagnose = settings.GetBool("intelligence.auto_diagnose");
  options.auto_diagnose_workers = count("intelligence.auto_diagnose_workers");
  options.auto_diagnose_settle = settings.GetDuration("intelligence.auto_diagnose_settle");
  options.auto_diagnose_age = settings.GetDuration("intelligence.auto_diagnose_age");
  options.auto_diagnose_runs = count("intelligence.auto_diagnose_runs");
  options.runbook_directory = settings.GetString("intelligence.runbook_directory");
  options.runbook_poll = settings.GetDuration("intelligence.runbook_poll");
  options.keep_runs = settings.GetDuration("intelligence.keep_runs");
  options.runs_per_user = count("intelligence.runs_per_user");
  options.retention_interval = settings.GetDuration("intelligence.retention_interval");
  return options;
}

}  // namespace expanse::intelligence
