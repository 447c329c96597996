// Brings the index up to date with the evidence store: reads the change feed, fingerprints bundles,
// reads samples, writes one page in one transaction together with the place in the feed. Internal
// to history.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "intelligence/history/history_writer.h"
#include "intelligence/history/indexed_history.h"
#include "intelligence/history/organisation_bundles.h"
#include "store/sql/database.h"

namespace expanse::intelligence::history {

// One thread at a time. A page is all or nothing: after a crash it is read again, and writing it
// again changes nothing.
class Indexer {
 public:
  Indexer(const HistorySources& sources, store::sql::Database& database,
          OrganisationBundles& bundles, base::Clock& clock, base::MetricRegistry& metrics);

  // The next page of the feed; false when there was nothing new. Blocks on the stores.
  base::Result<bool> Step();
  // Looks once more at the samples of runs that ended lately: they come by another stream than the
  // end, and later. How many it looked at, at most kMostSettledAtOnce.
  base::Result<std::size_t> Settle();

  static constexpr std::size_t kMostSettledAtOnce = 100;

 private:
  struct Page {
    std::vector<RunChange> runs;
    std::vector<CapturedBundle> bundles;
  };

  base::Result<Page> Prepare(const std::vector<store::ChangedExecution>& changes);
  base::Result<RunChange> PrepareRun(const store::ChangedExecution& changed);
  // Where the source of an execution is known by its hash already, nothing is read.
  base::Status PrepareBundle(const store::ChangedExecution& changed, std::string* bundle_hash,
                             std::vector<CapturedBundle>* bundles);
  base::Result<CapturedBundle> ReadBundle(const std::string& organisation_id,
                                          const store::BundleRow& row);
  base::Result<bool> IsKnown(std::string_view organisation_id, std::string_view bundle_hash);
  base::Result<std::optional<base::WallTime>> AddSamples(const evidence::Execution& execution,
                                                         IndexedRun* run);
  base::Status Write(const Page& page, const store::FeedPlace& next);
  base::Status StartOver();

  const HistorySources sources_;
  store::sql::Database& database_;
  OrganisationBundles& bundles_;
  base::Clock& clock_;
  base::Counter& changes_;
  base::Counter& unreadable_;
};

}  // namespace expanse::intelligence::history
