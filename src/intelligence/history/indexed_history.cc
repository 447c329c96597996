#include "intelligence/history/indexed_history.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/log.h"
#include "intelligence/history/history_reader.h"
#include "intelligence/history/history_tables.h"
#include "intelligence/history/history_writer.h"
#include "intelligence/history/indexer.h"
#include "intelligence/history/lookup.h"
#include "intelligence/history/organisation_bundles.h"
#include "store/sql/database.h"

namespace expanse::intelligence::history {

using store::sql::Transaction;

namespace {

constexpr std::chrono::seconds kLongestPause{30};
// How old an index may be before that is said.
constexpr std::chrono::seconds kBehind{60};

}  // namespace

struct IndexedHistory::Impl {
  Impl(const HistoryOptions& set, const HistorySources& sources,
       std::unique_ptr<store::sql::Database> opened, base::Clock& now,
       base::MetricRegistry& metrics)
      : options(set),
        database(std::move(opened)),
        indexer(sources, *database, bundles, now, metrics),
        look_ups(metrics.GetCounter("expanse_history_lookups_total",
                                    "Look-ups of recorded runs of a workload.")),
        failures(metrics.GetCounter("expanse_history_failures_total",
                                    "Steps of the history index that failed.")),
        bundle_count(
            metrics.GetGauge("expanse_history_bundles", "Source bundles in the history index.")),
        memory(metrics.GetGauge("expanse_history_memory_bytes",
                                "Memory of the similarity index of source bundles.")),
        caught_up(
            metrics.GetGauge("expanse_history_caught_up_timestamp_seconds",
                             "When the history index last had all executions, in Unix time.")),
        clock(now) {}

  base::Status Load();
  // Reads the feed to its end, and settles what is due; ends early when told to stop.
  base::Status Follow(const std::stop_token& stop);
  void FollowForEver(const std::stop_token& stop);
  // True when notified or `pause` has passed; false to stop.
  bool Wait(const std::stop_token& stop, std::chrono::milliseconds pause);

  const HistoryOptions options;
  const std::unique_ptr<store::sql::Database> database;
  OrganisationBundles bundles;
  Indexer indexer;
  base::Counter& look_ups;
  base::Counter& failures;
  base::Gauge& bundle_count;
  base::Gauge& memory;
  base::Gauge& caught_up;
  base::Clock& clock;
  // When the feed was last read to its end (Clock::Mono); an index that there was counts as whole
  // when it is opened, one that is begun does not.
  std::atomic<base::MonoTime> whole_at = base::MonoTime::min();

  std::mutex mutex;  // guards notified
  std::condition_variable_any changed;
  bool notified = false;
  std::jthread thread;
};

base::Status IndexedHistory::Impl::Load() {
  EXPANSE_ASSIGN_OR_RETURN(const store::FeedPlace place,
                           database->WithRead([](Transaction& tx) { return ReadPlace(tx); }));
  if (place.change != 0) whole_at = clock.Mono();
  EXPANSE_RETURN_IF_ERROR(database->WithWrite([&](Transaction& tx) {
    HistoryWriter writer(tx);
    return place.change == 0 ? writer.Clear() : writer.DropUnused();
  }));
  return database->WithRead([&](Transaction& tx) {
    return EachSignature(tx, [&](const StoredSignature& stored) {
      bundles.Put(stored.organisation_id, stored.bundle_id, stored.signature);
    });
  });
}

base::Status IndexedHistory::Impl::Follow(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    EXPANSE_ASSIGN_OR_RETURN(const bool more, indexer.Step());
    if (!more) break;
  }
  while (!stop.stop_requested()) {
    EXPANSE_ASSIGN_OR_RETURN(const std::size_t settled, indexer.Settle());
    if (settled < Indexer::kMostSettledAtOnce) break;
  }
  bundle_count.Set(static_cast<double>(bundles.size()));
  memory.Set(static_cast<double>(bundles.memory_bytes()));
  if (stop.stop_requested()) return {};
  caught_up.Set(static_cast<double>(base::ToMicros(clock.Now())) / 1e6);
  whole_at = clock.Mono();
  return {};
}

bool IndexedHistory::Impl::Wait(const std::stop_token& stop, std::chrono::milliseconds pause) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, pause, [&] { return notified; });
  notified = false;
  return !stop.stop_requested();
}

void IndexedHistory::Impl::FollowForEver(const std::stop_token& stop) {
  std::chrono::milliseconds pause = options.poll;
  do {
    const auto followed = Follow(stop);
    if (followed) {
      pause = options.poll;
      continue;
    }
    failures.Add();
    base::LogWarn("history.index_failed",
                  {{"reason", followed.error().reason}, {"message", followed.error().message}});
    pause = std::min<std::chrono::milliseconds>(pause * 2, kLongestPause);
  } while (Wait(stop, pause));
}

IndexedHistory::IndexedHistory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
IndexedHistory::~IndexedHistory() { Stop(); }

base::Result<std::unique_ptr<IndexedHistory>> IndexedHistory::Open(const HistoryOptions& options,
                                                                   const HistorySources& sources,
                                                                   base::Clock& clock,
                                                                   base::MetricRegistry& metrics) {
  EXPANSE_ASSIGN_OR_RETURN(
      auto database, store::sql::Database::Open({.path = options.path, .readers = options.readers},
                                                HistoryMigrations()));
  auto impl = std::make_unique<Impl>(options, sources, std::move(database), clock, metrics);
  EXPANSE_RETURN_IF_ERROR(impl->Load());
  return std::unique_ptr<IndexedHistory>(new IndexedHistory(std::move(impl)));
}

base::Result<Found> IndexedHistory::Find(const Query& query) {
  if (query.organisation_id.empty()) {
    return base::Fail(base::Code::kInvalidArgument, "history.organisation",
                      "a look-up needs an organisation");
  }
  impl_->look_ups.Add();
  EXPANSE_ASSIGN_OR_RETURN(Found found, impl_->database->WithRead([&](Transaction& tx) {
    return Lookup(tx, impl_->bundles, query).Run();
  }));
  const base::MonoTime whole_at = impl_->whole_at;
  if (whole_at == base::MonoTime::min() || impl_->clock.Mono() - whole_at > kBehind) {
    found.notes.emplace_back("The index of recorded runs is behind: there may be more runs.");
    found.version += "-behind";
  }
  return found;
}

void IndexedHistory::Start() {
  if (impl_->thread.joinable()) return;
  impl_->thread = std::jthread([this](std::stop_token stop) { impl_->FollowForEver(stop); });
}

void IndexedHistory::Stop() {
  if (!impl_->thread.joinable()) return;
  impl_->thread.request_stop();
  impl_->thread.join();
}

void IndexedHistory::Notify() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->notified = true;
  }
  impl_->changed.notify_all();
}

base::Status IndexedHistory::CatchUp() { return impl_->Follow({}); }

base::Result<HistorySize> IndexedHistory::Size() {
  EXPANSE_ASSIGN_OR_RETURN(const auto runs, impl_->database->WithRead([](Transaction& tx) {
    return tx.QueryInt("SELECT COUNT(*) FROM run");
  }));
  return HistorySize{.runs = static_cast<std::uint64_t>(runs.value_or(0)),
                     .bundles = impl_->bundles.size(),
                     .memory_bytes = impl_->bundles.memory_bytes()};
}

}  // namespace expanse::intelligence::history
