#include "intelligence/diagnose_case/assemble.h"

#include <algorithm>

#include "intelligence/diagnose_case/activity.h"
#include "intelligence/history/execution_run.h"
#include "intelligence/history/fingerprint.h"
#include "intelligence/history/usage_reader.h"

namespace expanse::intelligence::diagnose_case {
namespace {

using diagnose::Case;

base::Status AddLogs(const Stores& stores, const std::string& execution_id, Case* to) {
  EXPANSE_ASSIGN_OR_RETURN(const auto rows, stores.records.LogTails(execution_id));
  for (const store::LogTailRow& row : rows) {
    diagnose::LogText log{.stream = row.stream,
                          .data = {},
                          .offset = row.offset,
                          .total_bytes = row.total_bytes,
                          .first_error = {},
                          .first_error_offset = row.first_error_offset};
    if (!row.data_blob.empty()) {
      auto data = stores.blobs.Get(row.data_blob);
      if (!data) continue;
      log.data = std::move(*data);
    }
    if (!row.first_error_blob.empty()) {
      if (auto first = stores.blobs.Get(row.first_error_blob)) log.first_error = std::move(*first);
    }
    if (!log.data.empty() || !log.first_error.empty()) to->logs.push_back(std::move(log));
  }
  return {};
}

base::Result<std::vector<std::string>> AddSources(const Stores& stores, const Subject& subject,
                                                  Case* to) {
  std::vector<std::string> hashes;
  EXPANSE_ASSIGN_OR_RETURN(const auto bundle,
                           stores.records.Bundle(subject.execution.execution_id));
  if (bundle) {
    to->sources_skipped = bundle->skipped.size();
    for (const store::BundleFileRow& file : bundle->files) {
      auto data = stores.blobs.Get(file.blob);
      if (!data) {
        ++to->sources_skipped;
        continue;
      }
      to->sources.push_back({.path = file.path, .role = file.role, .data = std::move(*data)});
      hashes.push_back(file.content_hash);
    }
  }
  for (const diagnose::SourceText& extra : subject.extra_sources) to->sources.push_back(extra);
  return hashes;
}

history::Query QueryOf(const Subject& subject, const Case& of,
                       const std::vector<std::string>& hashes) {
  history::Query query;
  query.organisation_id = subject.organisation_id;
  query.compute_id = subject.execution.compute_id;
  query.visible_computes = subject.visible_computes;
  std::vector<history::SourceText> files;
  for (std::size_t index = 0; index < hashes.size(); ++index) {
    files.push_back({.path = of.sources[index].path,
                     .role = of.sources[index].role,
                     .data = of.sources[index].data,
                     .content_hash = hashes[index]});
  }
  if (!files.empty()) query.fingerprint = history::MakeFingerprint(files, history::EntryOf(files));
  query.arguments = history::ArgumentsOf(subject.execution.command);
  query.local_user = subject.execution.user;
  query.job_name = subject.execution.name;
  query.owner = history::OwnerOf(subject.execution);
  query.exclude_execution_id = subject.execution.execution_id;
  return query;
}

void AddSimilar(const Stores& stores, const history::Query& query, Case* to) {
  auto found = stores.history.Find(query);
  if (!found) return;
  to->similar_basis = found->basis;
  for (std::size_t index = 0; index < found->runs.size(); ++index) {
    diagnose::SimilarRun similar;
    similar.run = std::move(found->runs[index]);
    if (index < found->origins.size()) similar.compute_id = found->origins[index].compute_id;
    to->similar.push_back(std::move(similar));
  }
}

// The snapshot speaks of the limits that were applied and of what the run is known to have used.
void AddSnapshot(const Stores& stores, Case* to) {
  const evidence::Execution& execution = to->execution;
  predict::Run run = history::ToIndexedRun(execution).run;
  if (auto sampled = run; history::AddSampledUsage(stores.series, execution, &sampled))
    run = sampled;
  diagnose::Snapshot& seen = to->snapshot;
  seen.runtime_s = run.runtime_s;
  seen.gpu_type = run.gpu_type;
  if (seen.gpu_type.empty()) {
    seen.gpu_type = execution.allocated.gpu_type.empty() ? execution.requested.gpu_type
                                                         : execution.allocated.gpu_type;
  }
  if (run.requested.gpu_count && *run.requested.gpu_count > 0)
    seen.gpu_count = run.requested.gpu_count;
  seen.gpu_utilisation_pct = run.gpu_utilisation_pct;
  seen.gpu_memory_available_bytes = run.gpu_memory_available_bytes;
  seen.gpu_memory_observed_bytes = run.gpu_memory_peak_bytes;
  seen.cpu_requested = run.requested.cpu_cores;
  seen.cpu_mean_cores = run.cpu_mean_cores;
  seen.host_ram_observed_peak_bytes = run.memory_peak_bytes;
  seen.host_ram_requested_bytes = run.requested.memory_bytes;
  seen.walltime_s = run.requested.walltime_s;
  const auto activity = ReadActivity(stores.series, execution);
  if (!activity) return;
  to->series_count = activity->series;
  seen.idle_tail_s = activity->idle_tail_s;
  seen.memory_growth_bytes_per_hour = activity->memory_growth_bytes_per_hour;
}

}  // namespace

base::Result<Case> Assemble(const Stores& stores, const Subject& subject) {
  Case of;
  of.execution = subject.execution;
  of.compute_name = subject.execution.compute_id;
  EXPANSE_RETURN_IF_ERROR(AddLogs(stores, subject.execution.execution_id, &of));
  EXPANSE_ASSIGN_OR_RETURN(const auto hashes, AddSources(stores, subject, &of));
  AddSimilar(stores, QueryOf(subject, of, hashes), &of);
  AddSnapshot(stores, &of);
  return of;
}

}  // namespace expanse::intelligence::diagnose_case
