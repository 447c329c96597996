// From a submission and the recorded runs of its like to an answer. Pure: no I/O, no clock; bounded
// by the sizes of question and history. Two steps, because between them the caller looks for runs:
//
//   auto target = ReadTarget(question);
//   auto found = history.Find(QueryFor(*target, …));   // history/history.h
//   auto answer = Compose(question, *target, found);
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "intelligence/analyse/question.h"
#include "intelligence/history/history.h"
#include "workload/submission.h"

namespace expanse::intelligence::analyse {

// The target as it was read.
struct Target {
  workload::Submission submission;
  std::size_t part = 0;  // of the submission: what the answer is about
};

// Fails with invalid_argument: "analyse.<refusal's reason>" and its place for what no parser reads,
// "analyse.no_workload" and the names there are for a workload that the file does not have.
base::Result<Target> ReadTarget(const Question& question);

// What the scheduler will call the job: as the target says, else its file's name.
std::string JobNameOf(const Question& question, const Target& target);
// "train/worker/main": workload, group and container or task of a part, as far as it has them.
std::string NameOf(const workload::Part& part);

// The look-up for the target's runs; organisation, computes and limit are the caller's to set.
history::Query QueryFor(const Question& question, const Target& target);

struct Options {
  double target_chance = 0.95;  // what a recommendation's chance to complete must clear
};

Answer Compose(const Question& question, const Target& target, const history::Found& found,
               const Options& options = {});

}  // namespace expanse::intelligence::analyse
