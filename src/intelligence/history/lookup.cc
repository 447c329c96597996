#include "intelligence/history/lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/crypto.h"
#include "intelligence/history/similarity_index.h"
#include "intelligence/history/spread.h"

namespace expanse::intelligence::history {
namespace {

using predict::Basis;
using predict::Ending;

// Similar bundles whose runs are read.
constexpr std::size_t kMostSimilar = 64;
// With so many runs of the same arguments no others are needed.
constexpr std::size_t kEnoughOfTheSame = 4;

bool Tells(const Candidate& candidate) {
  switch (candidate.run.run.ending) {
    case Ending::kSuccess:
    case Ending::kFailure:
    case Ending::kOutOfMemory:
    case Ending::kTimeout:
      return true;
    case Ending::kCancelled:
    case Ending::kInfrastructure:
    case Ending::kUnknown:
      return false;
  }
  return false;
}

std::size_t Telling(const std::vector<Candidate>& runs) {
  return static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), Tells));
}

std::optional<Explained> Explain(const std::vector<Candidate>& runs) {
  std::vector<GroupedRun> grouped;
  grouped.reserve(runs.size());
  for (const Candidate& candidate : runs)
    grouped.push_back({.run = &candidate.run.run, .arguments = candidate.run.arguments_hash});
  return ExplainedByArguments(grouped);
}

std::string_view NeedName(predict::Resource resource) {
  return resource == predict::Resource::kMemory ? "memory" : "run time";
}

// Everything an answer says, so that any difference makes another version.
std::string VersionOf(const Found& found) {
  std::string all = fmt::format("{}|{}|{}|{}|{}", Name(found.basis), found.elsewhere,
                                found.truncated, found.input_name, found.input_size.value_or(-1));
  for (const std::string& note : found.notes) all += '\0' + note;
  for (std::size_t i = 0; i < found.runs.size(); ++i) {
    const predict::Run& run = found.runs[i];
    const Origin& origin = found.origins[i];
    const IndexedRun indexed{.execution_id = run.execution_id,
                             .compute_id = origin.compute_id,
                             .source_type = origin.source_type,
                             .user = origin.user,
                             .job_name = origin.job_name,
                             .owner = {},
                             .arguments_hash = origin.same_arguments ? "same" : "",
                             .arguments_shape = {},
                             .numbers = {run.similarity},
                             .array_index = run.input_size,
                             .run = run};
    const std::string encoded = EncodeRun(indexed);
    all += fmt::format("|{}|{}|", run.execution_id, encoded.size());
    all += encoded;
  }
  return base::Sha256Hex(all).substr(0, 32);
}

}  // namespace

Lookup::Lookup(store::sql::Transaction& tx, const OrganisationBundles& bundles, const Query& query)
    : reader_(tx),
      bundles_(bundles),
      query_(query),
      limit_(std::clamp<std::size_t>(query.limit, 1, kMaxRuns)),
      // One more tells whether there are older ones, another stands in for the one that does not
      // count.
      fetch_(limit_ + 2),
      arguments_(MakeArgumentsPrint(query.arguments)),
      print_(query.fingerprint) {}

base::Status Lookup::FindPlaces() {
  EXPANSE_ASSIGN_OR_RETURN(const Places all, reader_.Places(query_.organisation_id));
  for (const Place& place : all) {
    if (query_.visible_computes && std::ranges::find(*query_.visible_computes, place.compute_id) ==
                                       query_.visible_computes->end())
      continue;
    const bool is_here = query_.compute_id.empty() || place.compute_id == query_.compute_id;
    (is_here ? here_ : elsewhere_).push_back(place);
  }
  return {};
}

// A file with a secret in it was captured without: it is recognised by the bytes it had.
base::Status Lookup::ReplaceRedacted() {
  bool replaced = false;
  for (FilePrint& file : print_.files) {
    EXPANSE_ASSIGN_OR_RETURN(const auto hash,
                             reader_.RedactedAs(query_.organisation_id, file.content_hash));
    if (!hash || *hash == file.normalised_hash) continue;
    file.normalised_hash = *hash;
    replaced = true;
  }
  if (replaced) print_.bundle_key = BundleKey(print_.files);
  if (print_.entry < print_.files.size()) entry_hash_ = print_.files[print_.entry].normalised_hash;
  for (const FilePrint& file : print_.files) {
    if (file.is_source && !file.normalised_hash.empty()) files_.insert(file.normalised_hash);
  }
  return {};
}

base::Result<std::vector<Candidate>> Lookup::RunsOf(const std::vector<std::int64_t>& bundles,
                                                    bool same_arguments, const Places& places,
                                                    std::size_t fetch) {
  std::vector<Candidate> runs;
  for (const std::int64_t bundle_id : bundles) {
    // Of very many bundles with very many runs the newest bundles count.
    if (runs.size() > 2 * limit_) break;
    EXPANSE_RETURN_IF_ERROR(reader_.RunsOfBundle(
        bundle_id, same_arguments ? &arguments_.hash : nullptr, places, fetch, &runs));
  }
  std::erase_if(runs, [&](const Candidate& candidate) {
    return candidate.run.execution_id == query_.exclude_execution_id;
  });
  for (Candidate& candidate : runs) candidate.similarity = 1;
  return runs;
}

// Runs with the same arguments where there are enough of them; else all, unless arguments decide
// what a run needs.
base::Result<Lookup::Tier> Lookup::ChooseByArguments(const std::vector<std::int64_t>& bundles,
                                                     const Places& places) {
  Tier tier{.basis = Basis::kExactBundle, .runs = {}, .truncated = false, .notes = {}};
  EXPANSE_ASSIGN_OR_RETURN(tier.runs, RunsOf(bundles, /*same_arguments=*/true, places, fetch_));
  tier.truncated = KeepNewest(limit_, &tier.runs);
  const std::size_t same = Telling(tier.runs);
  if (same >= kEnoughOfTheSame) return tier;

  EXPANSE_ASSIGN_OR_RETURN(auto all, RunsOf(bundles, /*same_arguments=*/false, places, fetch_));
  const bool all_truncated = KeepNewest(limit_, &all);
  if (Telling(all) == same) return tier;
  const auto explained = Explain(all);
  const bool matters = explained && explained->share >= kArgumentsMatter;
  const std::string how = matters
                              ? fmt::format("arguments explain {:.0f} % of the spread of {}",
                                            100 * explained->share, NeedName(explained->resource))
                              : std::string();
  if (same > 0 && (matters || (!explained && same >= 2))) {
    if (matters) {
      tier.notes.push_back(fmt::format("Only runs with the same arguments count: {} over {} runs.",
                                       how, all.size()));
    }
    return tier;
  }
  tier.runs = std::move(all);
  tier.truncated = all_truncated;
  if (matters) tier.notes.push_back("No recorded run had these arguments, and " + how + ".");
  return tier;
}

base::Result<Lookup::Tier> Lookup::ExactRuns(const Places& places) {
  if (print_.bundle_key.empty()) return Tier{};
  EXPANSE_ASSIGN_OR_RETURN(const auto same,
                           reader_.BundlesWithKey(query_.organisation_id, print_.bundle_key));
  EXPANSE_ASSIGN_OR_RETURN(Tier tier, ChooseByArguments(same, places));
  if (Telling(tier.runs) > 0 || entry_hash_.empty()) return tier;
  EXPANSE_ASSIGN_OR_RETURN(const auto around,
                           reader_.BundlesAround(query_.organisation_id, entry_hash_, files_));
  EXPANSE_ASSIGN_OR_RETURN(tier, ChooseByArguments(around, places));
  if (!tier.runs.empty()) {
    tier.notes.emplace_back(
        "The recorded runs have files that were not given, or lack some that were: they count as "
        "the same source by the files that both have.");
  }
  return tier;
}

base::Result<Lookup::Tier> Lookup::SimilarRuns(const Places& places) {
  Tier tier{.basis = Basis::kSimilarBundle, .runs = {}, .truncated = false, .notes = {}};
  for (const SimilarBundle& near :
       bundles_.Find(query_.organisation_id, print_.signature, kSimilarEnough, kMostSimilar)) {
    if (tier.runs.size() > limit_) break;  // those that are nearer count
    EXPANSE_ASSIGN_OR_RETURN(auto runs, RunsOf({near.bundle_id}, /*same_arguments=*/false, places,
                                               fetch_ - tier.runs.size()));
    KeepNewest(limit_ + 1 - tier.runs.size(), &runs);
    for (Candidate& candidate : runs) {
      candidate.similarity = near.similarity;
      tier.runs.push_back(std::move(candidate));
    }
  }
  tier.truncated = tier.runs.size() > limit_;
  if (tier.truncated) tier.runs.resize(limit_);
  KeepNewest(limit_, &tier.runs);
  return tier;
}

base::Result<Lookup::Tier> Lookup::NamedRuns(const Places& places) {
  Tier tier{.basis = Basis::kSameName, .runs = {}, .truncated = false, .notes = {}};
  if (!query_.owner.empty())
    EXPANSE_RETURN_IF_ERROR(reader_.RunsOfOwner(query_.owner, places, fetch_, &tier.runs));
  if (tier.runs.empty() && !query_.local_user.empty() && !query_.job_name.empty()) {
    EXPANSE_RETURN_IF_ERROR(
        reader_.RunsOfName(query_.local_user, query_.job_name, places, fetch_, &tier.runs));
  }
  std::erase_if(tier.runs, [&](const Candidate& candidate) {
    return candidate.run.execution_id == query_.exclude_execution_id;
  });
  tier.truncated = KeepNewest(limit_, &tier.runs);
  for (Candidate& candidate : tier.runs) {
    candidate.similarity =
        bundles_.SimilarityTo(query_.organisation_id, candidate.bundle_id, print_.signature);
  }
  return tier;
}

base::Status Lookup::AddInputSizes(const Tier& tier, Found* found) {
  const auto numbers_of = [](const std::string& arguments_shape,
                             const std::vector<double>& arguments, const std::string& file_shape,
                             const std::vector<double>& file) {
    RunNumbers numbers{.shape = arguments_shape + "/" + file_shape, .values = arguments};
    numbers.values.insert(numbers.values.end(), file.begin(), file.end());
    return numbers;
  };
  std::map<std::int64_t, BundleFacts> facts;
  std::vector<RunNumbers> runs;
  for (const Candidate& candidate : tier.runs) {
    const auto [at, is_new] = facts.try_emplace(candidate.bundle_id);
    if (is_new && candidate.bundle_id != 0) {
      EXPANSE_ASSIGN_OR_RETURN(at->second, reader_.Facts(candidate.bundle_id));
    }
    runs.push_back(numbers_of(candidate.run.arguments_shape, candidate.run.numbers,
                              at->second.shape_hash, at->second.numbers));
  }
  const RunNumbers asked =
      numbers_of(arguments_.shape, arguments_.numbers, print_.shape_hash, print_.numbers);
  if (const auto varying = OneThatVaries(asked, runs)) {
    const std::size_t of_arguments = arguments_.numbers.size();
    found->input_name = *varying < of_arguments
                            ? fmt::format("number {} of the arguments", *varying + 1)
                            : fmt::format("number {} of the file", *varying - of_arguments + 1);
    found->input_size = asked.values[*varying];
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].shape == asked.shape && runs[i].values.size() == asked.values.size())
        found->runs[i].input_size = runs[i].values[*varying];
    }
    return {};
  }
  const auto has_index = [](const Candidate& candidate) { return candidate.run.array_index; };
  if (!std::all_of(tier.runs.begin(), tier.runs.end(), has_index)) return {};
  found->input_name = "array index";
  for (std::size_t i = 0; i < tier.runs.size(); ++i)
    found->runs[i].input_size = tier.runs[i].run.array_index;
  return {};
}

base::Result<Found> Lookup::Answer(Tier tier, bool elsewhere) {
  Found found;
  found.basis = tier.runs.empty() ? Basis::kNone : tier.basis;
  found.truncated = tier.truncated;
  found.elsewhere = elsewhere && !tier.runs.empty();
  std::reverse(tier.runs.begin(), tier.runs.end());
  for (const Candidate& candidate : tier.runs) {
    found.similarity = std::max(found.similarity, candidate.similarity);
    found.runs.push_back(candidate.run.run);
    found.runs.back().similarity = candidate.similarity;
    found.origins.push_back({.compute_id = candidate.run.compute_id,
                             .source_type = candidate.run.source_type,
                             .user = candidate.run.user,
                             .job_name = candidate.run.job_name,
                             .same_arguments = candidate.run.arguments_hash == arguments_.hash});
  }
  if (found.basis == Basis::kExactBundle || found.basis == Basis::kSimilarBundle)
    EXPANSE_RETURN_IF_ERROR(AddInputSizes(tier, &found));
  found.notes = std::move(tier.notes);
  if (found.basis == Basis::kSimilarBundle) {
    found.notes.push_back(fmt::format(
        "No run of exactly this source is recorded; runs of similar source count (similarity up "
        "to {:.2f}).",
        found.similarity));
  }
  if (found.basis == Basis::kSameName) {
    found.notes.emplace_back(
        "No run of this or similar source is recorded; runs of the same name count.");
  }
  if (found.elsewhere) {
    found.notes.emplace_back(
        "The compute that was asked for has no such runs; those of other computes count.");
  }
  if (found.truncated) {
    found.notes.push_back(
        fmt::format("There are more recorded runs; the newest {} count.", found.runs.size()));
  }
  found.version = VersionOf(found);
  return found;
}

base::Result<Found> Lookup::Run() {
  EXPANSE_RETURN_IF_ERROR(FindPlaces());
  EXPANSE_RETURN_IF_ERROR(ReplaceRedacted());
  using Step = base::Result<Tier> (Lookup::*)(const Places&);
  constexpr std::array<Step, 3> kTiers = {&Lookup::ExactRuns, &Lookup::SimilarRuns,
                                          &Lookup::NamedRuns};
  Tier silent;  // runs that say nothing, where no tier has any that do
  bool silent_elsewhere = false;
  for (const Step step : kTiers) {
    for (const Places* places : {&here_, &elsewhere_}) {
      if (places->empty()) continue;
      const bool elsewhere = places == &elsewhere_;
      EXPANSE_ASSIGN_OR_RETURN(Tier tier, (this->*step)(*places));
      if (Telling(tier.runs) > 0) return Answer(std::move(tier), elsewhere);
      if (silent.runs.empty() && !tier.runs.empty()) {
        silent = std::move(tier);
        silent_elsewhere = elsewhere;
      }
    }
  }
  return Answer(std::move(silent), silent_elsewhere);
}

}  // namespace expanse::intelligence::history
