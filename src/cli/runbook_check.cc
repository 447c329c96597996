#include "cli/runbook_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "intelligence/diagnose/case_file.h"
#include "intelligence/diagnose/diagnose.h"

namespace expanse::cli {
namespace {

namespace diagnose = intelligence::diagnose;
using diagnose::Runbook;
using diagnose::RunbookSet;

constexpr std::size_t kMostQuotes = 3;
constexpr std::size_t kLongestQuote = 200;

struct FileRunbooks {
  std::string path;
  std::vector<Runbook> runbooks;
  bool readable = true;
  std::size_t problems = 0;
};

void AddLine(Findings* to, std::string_view line) {
  to->text += base::EscapeForDisplay(line) + '\n';
}
void AddProblem(Findings* to, std::string_view line) {
  AddLine(to, line);
  ++to->problems;
}

std::vector<FileRunbooks> ReadAll(const std::vector<NamedText>& files, Findings* found) {
  std::vector<FileRunbooks> all;
  for (const NamedText& file : files) {
    FileRunbooks& read = all.emplace_back(FileRunbooks{.path = file.path, .runbooks = {}});
    auto runbooks = diagnose::ParseRunbooks(file.text, file.path);
    if (!runbooks) {
      AddProblem(found, runbooks.error().message);
      read.readable = false;
      ++read.problems;
      continue;
    }
    read.runbooks = *std::move(runbooks);
  }
  return all;
}

// A class that is defined twice is not wrong, but nobody should be surprised by it.
void NoteReplaced(const std::vector<FileRunbooks>& all, Findings* found) {
  std::map<std::string, std::string> known;
  for (const Runbook& runbook : RunbookSet::Embedded()) known.emplace(runbook.id, "the program's");
  for (const FileRunbooks& file : all) {
    for (const Runbook& runbook : file.runbooks) {
      const std::string mine = file.path + "'s";
      const auto [other, added] = known.emplace(runbook.id, mine);
      if (added || other->second == mine) continue;  // twice in a file is an error
      AddLine(found, fmt::format("{}:{}: note: {} replaces {} runbook of this class", file.path,
                                 runbook.line, runbook.id, other->second));
      other->second = mine;
    }
  }
}

std::size_t SamplesOf(const FileRunbooks& file) {
  std::size_t samples = 0;
  for (const Runbook& runbook : file.runbooks)
    samples += runbook.must_match.size() + runbook.must_not_match.size();
  return samples;
}

std::string Count(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

void AddSummaries(const std::vector<FileRunbooks>& all, Findings* found) {
  for (const FileRunbooks& file : all) {
    if (!file.readable) continue;
    AddLine(found, fmt::format("{}: {}, {}, {}", file.path, Count(file.runbooks.size(), "runbook"),
                               Count(SamplesOf(file), "sample"),
                               file.problems == 0 ? "ok" : Count(file.problems, "problem")));
  }
}

// The program's own runbooks with those of the files over them, of `last` over all others.
base::Result<std::shared_ptr<const RunbookSet>> Combine(const std::vector<FileRunbooks>& all,
                                                        const FileRunbooks* last) {
  std::vector<Runbook> runbooks = RunbookSet::Embedded();
  const auto add = [&](const FileRunbooks& file) {
    runbooks.insert(runbooks.end(), file.runbooks.begin(), file.runbooks.end());
  };
  for (const FileRunbooks& file : all)
    if (&file != last) add(file);
  if (last != nullptr) add(*last);
  return RunbookSet::CreateUnchecked(std::move(runbooks), RunbookSet::EmbeddedDecoys(),
                                     /*replace=*/true);
}

// Those of this file's samples that fail in a set where its runbooks are in force.
void AddFailingSamples(const RunbookSet& set, FileRunbooks* file, Findings* found) {
  for (const diagnose::SampleFailure& failure : set.FailingSamples()) {
    const Runbook& of = set.runbooks()[failure.runbook];
    if (of.file != file->path) continue;
    AddProblem(found, fmt::format("{}:{}: {}: {}", of.file, failure.line, of.id, failure.message));
    ++file->problems;
  }
}

// Runbooks that a later file replaces are checked as well.
base::Status CheckSamples(const RunbookSet& set, std::vector<FileRunbooks>* all, Findings* found) {
  for (FileRunbooks& file : *all) {
    const bool in_force = std::all_of(
        file.runbooks.begin(), file.runbooks.end(),
        [&](const Runbook& runbook) { return set.Find(runbook.id)->file == file.path; });
    if (in_force) {
      AddFailingSamples(set, &file, found);
      continue;
    }
    EXPANSE_ASSIGN_OR_RETURN(const auto own, Combine(*all, &file));
    AddFailingSamples(*own, &file, found);
  }
  return {};
}

std::string_view Label(intelligence::predict::Confidence confidence) {
  switch (confidence) {
    case intelligence::predict::Confidence::kLow:
      return "low";
    case intelligence::predict::Confidence::kMedium:
      return "medium";
    case intelligence::predict::Confidence::kHigh:
      return "high";
  }
  return "";
}

std::string Said(const diagnose::Diagnosis& said) {
  if (said.failure_class.empty()) return "none";
  return fmt::format("{} ({})", said.failure_class, Label(said.confidence));
}

void AddQuotes(const diagnose::Diagnosis& said, Findings* to) {
  std::size_t quotes = 0;
  for (const diagnose::CitedEvidence& cited : said.evidence) {
    if (cited.quote.empty() || quotes++ >= kMostQuotes) continue;
    AddLine(to, fmt::format("  {}: {}", cited.where, cited.quote.substr(0, kLongestQuote)));
  }
}

}  // namespace

RunbookCheck CheckRunbooks(const std::vector<NamedText>& files) {
  RunbookCheck check;
  std::vector<FileRunbooks> all = ReadAll(files, &check.found);
  NoteReplaced(all, &check.found);
  auto set = Combine(all, /*last=*/nullptr);
  if (!set) {
    AddProblem(&check.found, set.error().message);
    return check;
  }
  if (auto checked = CheckSamples(**set, &all, &check.found); !checked)
    AddProblem(&check.found, checked.error().message);
  AddSummaries(all, &check.found);
  check.set = *std::move(set);
  return check;
}

Findings CheckCases(const NamedText& file, const RunbookSet& set) {
  Findings found;
  const auto cases = diagnose::ParseCases(file.text, file.path);
  if (!cases) {
    AddProblem(&found, cases.error().message);
    return found;
  }
  for (const diagnose::LabelledCase& labelled : *cases) {
    const diagnose::Diagnosis said = diagnose::Diagnose(labelled.what, set);
    const std::string line = fmt::format("{}: {}: {}", file.path,
                                         labelled.id.empty() ? "case" : labelled.id, Said(said));
    if (labelled.true_class.empty()) {
      AddLine(&found, line);
    } else if (IsRight(labelled, said.failure_class)) {
      AddLine(&found, line + ", as expected");
    } else {
      AddProblem(&found, line + ", expected " + labelled.true_class);
    }
    AddQuotes(said, &found);
  }
  return found;
}

Findings ExplainLog(const NamedText& log, const RunbookSet& set) {
  diagnose::Case of;
  of.execution.status = evidence::ExecutionStatus::kFailed;
  of.logs.push_back({.stream = "output", .data = log.text, .total_bytes = log.text.size()});
  const diagnose::Diagnosis said = diagnose::Diagnose(of, set);
  Findings found;
  AddLine(&found, fmt::format("{}: {}", log.path, Said(said)));
  AddQuotes(said, &found);
  for (const diagnose::Alternative& other : said.alternatives)
    AddLine(&found, fmt::format("  also possible: {}", other.failure_class));
  return found;
}

}  // namespace expanse::cli
