// One look-up: tier by tier, here before elsewhere. Internal to history.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "intelligence/history/history.h"
#include "intelligence/history/history_reader.h"
#include "intelligence/history/organisation_bundles.h"
#include "store/sql/database.h"

namespace expanse::intelligence::history {

// Of one query, inside one read transaction.
class Lookup {
 public:
  Lookup(store::sql::Transaction& tx, const OrganisationBundles& bundles, const Query& query);
  base::Result<Found> Run();

 private:
  // The runs of a tier, newest first, at most `limit_`.
  struct Tier {
    predict::Basis basis = predict::Basis::kNone;
    std::vector<Candidate> runs;
    bool truncated = false;
    std::vector<std::string> notes;
  };
  using Places = std::vector<Place>;

  base::Status FindPlaces();
  base::Status ReplaceRedacted();
  base::Result<Tier> ExactRuns(const Places& places);
  base::Result<Tier> SimilarRuns(const Places& places);
  base::Result<Tier> NamedRuns(const Places& places);
  base::Result<std::vector<Candidate>> RunsOf(const std::vector<std::int64_t>& bundles,
                                              bool same_arguments, const Places& places,
                                              std::size_t fetch);
  base::Result<Tier> ChooseByArguments(const std::vector<std::int64_t>& bundles,
                                       const Places& places);
  base::Result<Found> Answer(Tier tier, bool elsewhere);
  base::Status AddInputSizes(const Tier& tier, Found* found);

  HistoryReader reader_;
  const OrganisationBundles& bundles_;
  const Query& query_;
  const std::size_t limit_;
  const std::size_t fetch_;  // runs read of one kind
  const ArgumentsPrint arguments_;
  Fingerprint print_;            // of what is asked, its redacted files as they were captured
  std::string entry_hash_;       // empty: there is no source
  std::set<std::string> files_;  // normalised hashes of the source
  Places here_;
  Places elsewhere_;
};

}  // namespace expanse::intelligence::history
