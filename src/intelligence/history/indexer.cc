#include "intelligence/history/indexer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/log.h"
#include "intelligence/history/execution_run.h"
#include "intelligence/history/usage_reader.h"

namespace expanse::intelligence::history {
namespace {

using store::sql::Column;
using store::sql::Row;
using store::sql::Transaction;

constexpr std::size_t kChangesPerPage = 500;
// When samples are looked at again: soon after the end, and when also a spool that was read late
// has been sent.
constexpr std::chrono::seconds kSoon{20};
constexpr std::chrono::minutes kAtLast{6};
// A bundle's text, all files together; the daemon captures less.
constexpr std::size_t kMaxBundleBytes = 8U << 20;

// When to look at the samples of a run again; absent: what there is will not change.
std::optional<base::WallTime> NextLook(const evidence::Execution& execution, base::WallTime now) {
  if (!execution.ended_at) return std::nullopt;
  const base::WallTime last = *execution.ended_at + kAtLast;
  if (now >= last) return std::nullopt;
  const base::WallTime soon = *execution.ended_at + kSoon;
  return now < soon ? soon : last;
}

}  // namespace

Indexer::Indexer(const HistorySources& sources, store::sql::Database& database,
                 OrganisationBundles& bundles, base::Clock& clock, base::MetricRegistry& metrics)
    : sources_(sources),
      database_(database),
      bundles_(bundles),
      clock_(clock),
      changes_(metrics.GetCounter("expanse_history_changes_total",
                                  "Changes of executions that the history index has taken in.")),
      unreadable_(
          metrics.GetCounter("expanse_history_unreadable_files_total",
                             "Source files that could not be read for the history index.")) {}

base::Result<bool> Indexer::Step() {
  EXPANSE_ASSIGN_OR_RETURN(const store::FeedPlace place,
                           database_.WithRead([](Transaction& tx) { return ReadPlace(tx); }));
  EXPANSE_ASSIGN_OR_RETURN(const store::ChangePage page,
                           sources_.records.Changed(place, kChangesPerPage));
  if (page.restart) {
    EXPANSE_RETURN_IF_ERROR(StartOver());
    return true;
  }
  if (page.changes.empty()) return false;
  EXPANSE_ASSIGN_OR_RETURN(const Page prepared, Prepare(page.changes));
  EXPANSE_RETURN_IF_ERROR(Write(prepared, page.next));
  changes_.Add(page.changes.size());
  return true;
}

base::Result<Indexer::Page> Indexer::Prepare(const std::vector<store::ChangedExecution>& changes) {
  Page page;
  for (const store::ChangedExecution& changed : changes) {
    EXPANSE_ASSIGN_OR_RETURN(RunChange run, PrepareRun(changed));
    if (!changed.removed)
      EXPANSE_RETURN_IF_ERROR(PrepareBundle(changed, &run.bundle_hash, &page.bundles));
    page.runs.push_back(std::move(run));
  }
  return page;
}

base::Result<RunChange> Indexer::PrepareRun(const store::ChangedExecution& changed) {
  RunChange change{.organisation_id = changed.organisation_id,
                   .execution_id = changed.execution_id,
                   .run = {},
                   .bundle_hash = {},
                   .settle_at = {}};
  if (changed.removed || !TellsSomething(changed.execution)) return change;
  change.run = ToIndexedRun(changed.execution);
  EXPANSE_ASSIGN_OR_RETURN(change.settle_at, AddSamples(changed.execution, &*change.run));
  return change;
}

base::Result<std::optional<base::WallTime>> Indexer::AddSamples(
    const evidence::Execution& execution, IndexedRun* run) {
  // Asked for before the samples are read, so that none that come meanwhile are missed.
  const auto next = NextLook(execution, clock_.Now());
  const auto added = AddSampledUsage(sources_.series, execution, &run->run);
  if (added) return next;
  // Damaged samples of one run must not stop the feed.
  if (added.error().code != base::Code::kDataLoss) return std::unexpected(added.error());
  base::LogWarn("history.samples_lost",
                {{"execution", execution.execution_id}, {"reason", added.error().reason}});
  return std::nullopt;
}

base::Result<bool> Indexer::IsKnown(std::string_view organisation_id,
                                    std::string_view bundle_hash) {
  return database_.WithRead([&](Transaction& tx) -> base::Result<bool> {
    EXPANSE_ASSIGN_OR_RETURN(const auto known,
                             tx.QueryInt("SELECT bundle_id FROM captured WHERE organisation_id = "
                                         ":organisation AND bundle_hash = :hash",
                                         {organisation_id, bundle_hash}));
    return known.has_value();
  });
}

base::Status Indexer::PrepareBundle(const store::ChangedExecution& changed,
                                    std::string* bundle_hash,
                                    std::vector<CapturedBundle>* bundles) {
  const auto known = [&](const std::string& hash) -> base::Result<bool> {
    const bool here = std::any_of(bundles->begin(), bundles->end(), [&](const auto& bundle) {
      return bundle.bundle_hash == hash && bundle.organisation_id == changed.organisation_id;
    });
    if (here) return true;
    return IsKnown(changed.organisation_id, hash);
  };
  *bundle_hash = changed.execution.bundle_hash;
  if (!bundle_hash->empty()) {
    EXPANSE_ASSIGN_OR_RETURN(const bool is_known, known(*bundle_hash));
    if (is_known) return {};
  }
  EXPANSE_ASSIGN_OR_RETURN(const auto row, sources_.records.Bundle(changed.execution_id));
  if (!row || row->files.empty()) return {};
  *bundle_hash = row->bundle_hash;
  EXPANSE_ASSIGN_OR_RETURN(const bool is_known, known(*bundle_hash));
  if (is_known) return {};
  EXPANSE_ASSIGN_OR_RETURN(CapturedBundle bundle, ReadBundle(changed.organisation_id, *row));
  bundles->push_back(std::move(bundle));
  return {};
}

base::Result<CapturedBundle> Indexer::ReadBundle(const std::string& organisation_id,
                                                 const store::BundleRow& row) {
  std::vector<std::string> texts;
  std::vector<const store::BundleFileRow*> files;
  std::size_t bytes = 0;
  for (const store::BundleFileRow& file : row.files) {
    if (file.size_bytes > kMaxBundleBytes - bytes) continue;
    auto text = sources_.blobs.Get(file.blob);
    if (!text && text.error().code != base::Code::kNotFound &&
        text.error().code != base::Code::kDataLoss)
      return std::unexpected(std::move(text).error());
    if (!text) {  // lost for good: the others still tell
      unreadable_.Add();
      base::LogWarn("history.unreadable_file",
                    {{"blob", file.blob}, {"reason", text.error().reason}});
      continue;
    }
    bytes = std::min(bytes + text->size(), kMaxBundleBytes);
    texts.push_back(std::move(*text));
    files.push_back(&file);
  }
  std::vector<SourceText> sources;
  for (std::size_t i = 0; i < files.size(); ++i) {
    sources.push_back({.path = files[i]->path,
                       .role = files[i]->role,
                       .data = texts[i],
                       .content_hash = files[i]->content_hash});
  }
  CapturedBundle bundle{.organisation_id = organisation_id,
                        .bundle_hash = row.bundle_hash,
                        .fingerprint = MakeFingerprint(sources, EntryOf(sources)),
                        .redacted = {}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FilePrint& print = bundle.fingerprint.files[i];
    if (files[i]->redactions > 0 && !print.normalised_hash.empty())
      bundle.redacted.emplace_back(print.content_hash, print.normalised_hash);
  }
  return bundle;
}

base::Status Indexer::Write(const Page& page, const store::FeedPlace& next) {
  std::vector<BundleChange> changes;
  EXPANSE_RETURN_IF_ERROR(database_.WithWrite([&](Transaction& tx) -> base::Status {
    HistoryWriter writer(tx);
    for (const CapturedBundle& bundle : page.bundles)
      EXPANSE_RETURN_IF_ERROR(writer.AddBundle(bundle));
    for (const RunChange& run : page.runs) EXPANSE_RETURN_IF_ERROR(writer.Apply(run));
    EXPANSE_RETURN_IF_ERROR(writer.Finish());
    EXPANSE_RETURN_IF_ERROR(writer.SetPlace(next));
    changes = writer.TakeChanges();
    return {};
  }));
  bundles_.Follow(changes);
  return {};
}

base::Status Indexer::StartOver() {
  EXPANSE_RETURN_IF_ERROR(
      database_.WithWrite([](Transaction& tx) { return HistoryWriter(tx).Clear(); }));
  bundles_.Clear();
  return {};
}

base::Result<std::size_t> Indexer::Settle() {
  struct Due {
    std::string organisation_id;
    std::string execution_id;
  };
  std::vector<Due> due;
  EXPANSE_RETURN_IF_ERROR(database_.WithRead([&](Transaction& tx) {
    return tx.Query(
        "SELECT place.organisation_id, run.execution_id FROM run JOIN place ON place.place_id = "
        "run.place_id WHERE run.settle_at <= :now ORDER BY run.settle_at LIMIT :limit",
        {clock_.Now(), kMostSettledAtOnce}, {Column::kText, Column::kText}, [&](const Row& row) {
          due.push_back({.organisation_id = row.Text(0), .execution_id = row.Text(1)});
        });
  }));
  for (const Due& run : due) {
    std::optional<IndexedRun> again;
    std::optional<base::WallTime> next;
    auto execution = sources_.records.Get(run.organisation_id, run.execution_id);
    // One that is gone: the feed will say so.
    if (!execution && execution.error().code != base::Code::kNotFound)
      return std::unexpected(std::move(execution).error());
    if (execution && TellsSomething(*execution)) {
      again = ToIndexedRun(*execution);
      EXPANSE_ASSIGN_OR_RETURN(next, AddSamples(*execution, &*again));
    }
    EXPANSE_RETURN_IF_ERROR(database_.WithWrite(
        [&](Transaction& tx) { return HistoryWriter(tx).Settle(run.execution_id, again, next); }));
  }
  return due.size();
}

}  // namespace expanse::intelligence::history
