// Gathers what the stores know of one execution into the case that the diagnosis works on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/execution.h"
#include "intelligence/diagnose/case.h"
#include "intelligence/history/history.h"
#include "store/blobs/blob_store.h"
#include "store/records/evidence_store.h"
#include "store/series/series_store.h"

namespace expanse::intelligence::diagnose_case {

// Outlive the call.
struct Stores {
  store::EvidenceStore& records;
  store::BlobStore& blobs;
  store::SeriesStore& series;
  history::History& history;
};

struct Subject {
  std::string organisation_id;
  evidence::Execution execution;  // of that organisation: the caller has checked it
  // As history::Query: the computes whose runs may be cited; absent: all of the organisation.
  std::optional<std::vector<std::string>> visible_computes = {};
  std::vector<diagnose::SourceText> extra_sources = {};  // given by the user
};

// What a store does not have, or cannot read just now (a blob that is gone), is left out and its
// stage of the diagnosis says so; only failures of the record store itself are errors. Blocks on
// the stores; a few reads, bounded by what capture bounds. Failure classes of similar runs and of
// nodes are the caller's to fill in.
base::Result<diagnose::Case> Assemble(const Stores& stores, const Subject& subject);

}  // namespace expanse::intelligence::diagnose_case
