#include "intelligence/diagnose/runbook_set.h"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <optional>

namespace expanse::intelligence::diagnose {
namespace {

// The automaton of all signatures grows with the lines it meets; beyond this it is thrown away and
// begun again, which costs time only.
constexpr std::int64_t kAutomatonBytes = std::int64_t{48} << 20;

re2::RE2::Options Options() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kAutomatonBytes);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // any bytes
  return options;
}

// `line` is of the runbook's file; 0: unknown.
std::unexpected<base::Error> Bad(std::string reason, const Runbook& of, std::size_t line,
                                 const std::string& what) {
  const std::string where = line == 0 ? of.file : of.file + ":" + std::to_string(line);
  return base::Fail(base::Code::kInvalidArgument, "runbook." + std::move(reason),
                    where + ": " + of.id + ": " + what);
}

}  // namespace

struct RunbookSet::Compiled {
  re2::RE2::Set signatures{Options(), re2::RE2::UNANCHORED};
  std::vector<SignatureHit> of;  // per pattern of the set; runbook is one of these for decoys
  static constexpr std::size_t kDecoy = static_cast<std::size_t>(-1);
  static constexpr std::size_t kWeakens = static_cast<std::size_t>(-2);
};

RunbookSet::RunbookSet() = default;
RunbookSet::~RunbookSet() = default;

base::Result<std::shared_ptr<const RunbookSet>> RunbookSet::Create(std::vector<Runbook> runbooks,
                                                                   std::vector<Decoy> decoys,
                                                                   bool replace) {
  EXPANSE_ASSIGN_OR_RETURN(auto set,
                           CreateUnchecked(std::move(runbooks), std::move(decoys), replace));
  for (const SampleFailure& failure : set->FailingSamples())
    return Bad("sample", set->runbooks_[failure.runbook], failure.line, failure.message);
  return set;
}

base::Result<std::shared_ptr<const RunbookSet>> RunbookSet::CreateUnchecked(
    std::vector<Runbook> runbooks, std::vector<Decoy> decoys, bool replace) {
  std::shared_ptr<RunbookSet> set(new RunbookSet());
  set->runbooks_ = std::move(runbooks);
  set->decoys_ = std::move(decoys);
  EXPANSE_RETURN_IF_ERROR(set->Index(replace));
  EXPANSE_RETURN_IF_ERROR(set->Compile());
  return std::shared_ptr<const RunbookSet>(std::move(set));
}

base::Status RunbookSet::Index(bool replace) {
  std::vector<Runbook> unique;
  for (Runbook& runbook : runbooks_) {
    const auto known = by_id_.find(runbook.id);
    if (known == by_id_.end()) {
      by_id_.emplace(runbook.id, unique.size());
      unique.push_back(std::move(runbook));
    } else if (replace && unique[known->second].file != runbook.file) {
      unique[known->second] = std::move(runbook);
    } else {
      return Bad("duplicate", runbook, runbook.line,
                 "is defined in " + unique[known->second].file + " already");
    }
  }
  runbooks_ = std::move(unique);
  const std::size_t count = runbooks_.size();
  explains_.assign(count, std::vector<bool>(count, false));
  for (std::size_t index = 0; index < count; ++index) {
    for (const std::string& other : runbooks_[index].explains) {
      const auto found = by_id_.find(other);
      if (found == by_id_.end())
        return Bad("unknown_class", runbooks_[index], runbooks_[index].line,
                   "explains '" + other + "', which there is not");
      explains_[index][found->second] = true;
    }
    for (const std::string& other : runbooks_[index].confused_with) {
      if (by_id_.find(other) == by_id_.end())
        return Bad("unknown_class", runbooks_[index], runbooks_[index].line,
                   "is confused with '" + other + "', which there is not");
    }
  }
  for (std::size_t via = 0; via < count; ++via) {  // closure
    for (std::size_t from = 0; from < count; ++from) {
      if (!explains_[from][via]) continue;
      for (std::size_t to = 0; to < count; ++to)
        if (explains_[via][to]) explains_[from][to] = true;
    }
  }
  for (std::size_t index = 0; index < count; ++index) {
    if (explains_[index][index])
      return Bad("cycle", runbooks_[index], runbooks_[index].line,
                 "explains itself through others");
  }
  return {};
}

base::Status RunbookSet::Compile() {
  compiled_ = std::make_unique<Compiled>();
  std::string error;
  for (std::size_t index = 0; index < runbooks_.size(); ++index) {
    for (const Signature& signature : runbooks_[index].signatures) {
      if (compiled_->signatures.Add(signature.pattern, &error) < 0)
        return Bad("pattern", runbooks_[index], signature.line,
                   "'" + signature.pattern + "': " + error);
      compiled_->of.push_back({.runbook = index, .strength = signature.strength});
    }
  }
  for (const Decoy& decoy : decoys_) {
    if (compiled_->signatures.Add(decoy.pattern, &error) < 0)
      return base::Fail(base::Code::kInvalidArgument, "runbook.pattern",
                        "decoy '" + decoy.pattern + "': " + error);
    compiled_->of.push_back({.runbook = decoy.weakens ? Compiled::kWeakens : Compiled::kDecoy,
                             .strength = Strength::kWeak});
  }
  if (!compiled_->signatures.Compile())
    return base::Fail(base::Code::kResourceExhausted, "runbook.too_many",
                      "the runbooks' signatures are too many for one automaton");
  return {};
}

void RunbookSet::CheckSamples(std::size_t runbook, bool must_match,
                              std::vector<SampleFailure>* to) const {
  const Runbook& of = runbooks_[runbook];
  const auto& samples = must_match ? of.must_match : of.must_not_match;
  const auto& lines = must_match ? of.must_match_at : of.must_not_match_at;
  for (std::size_t index = 0; index < samples.size(); ++index) {
    bool decoy = false;
    const std::vector<SignatureHit> hits = MatchAll(samples[index], &decoy);
    const bool matches = std::any_of(
        hits.begin(), hits.end(), [&](const SignatureHit& hit) { return hit.runbook == runbook; });
    if ((matches && !decoy) == must_match) continue;
    std::string message = must_match ? "no signature matches '" : "a signature matches '";
    if (must_match && decoy) message = "a decoy matches, so that nothing else may, '";
    to->push_back({.runbook = runbook,
                   .line = index < lines.size() ? lines[index] : 0,
                   .message = message + samples[index] + "'"});
  }
}

std::vector<SampleFailure> RunbookSet::FailingSamples() const {
  std::vector<SampleFailure> failures;
  for (std::size_t index = 0; index < runbooks_.size(); ++index) {
    CheckSamples(index, /*must_match=*/true, &failures);
    CheckSamples(index, /*must_match=*/false, &failures);
  }
  return failures;
}

const Runbook* RunbookSet::Find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &runbooks_[found->second];
}

std::size_t RunbookSet::IndexOf(std::string_view id) const { return by_id_.find(id)->second; }

std::vector<SignatureHit> RunbookSet::Match(std::string_view message) const {
  bool decoy = false;
  std::vector<SignatureHit> hits = MatchAll(message, &decoy);
  if (decoy) hits.clear();
  return hits;
}

std::vector<SignatureHit> RunbookSet::MatchAll(std::string_view message, bool* decoy) const {
  std::vector<SignatureHit> hits;
  std::vector<int> patterns;
  bool weak = false;
  re2::RE2::Set::ErrorInfo error{};
  if (!compiled_->signatures.Match(message, &patterns, &error)) return hits;
  for (const int pattern : patterns) {
    const SignatureHit& hit = compiled_->of[static_cast<std::size_t>(pattern)];
    if (hit.runbook == Compiled::kDecoy) {
      *decoy = true;
      continue;
    }
    if (hit.runbook == Compiled::kWeakens) {
      weak = true;
      continue;
    }
    const auto known = std::find_if(hits.begin(), hits.end(), [&](const SignatureHit& other) {
      return other.runbook == hit.runbook;
    });
    if (known == hits.end()) {
      hits.push_back(hit);
    } else {
      known->strength = std::max(known->strength, hit.strength);
    }
  }
  for (SignatureHit& hit : hits)
    if (weak) hit.strength = Strength::kWeak;
  return hits;
}

}  // namespace expanse::intelligence::diagnose
