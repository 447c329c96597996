#include <vector>

#include "intelligence/analyse/analyse.h"

namespace expanse::intelligence::analyse {
namespace {

// What a scheduler calls the job where the file does not say.
std::string JobName(const Question& question, const Target& target) {
  const workload::Part& part = target.submission.parts[target.part];
  if (!part.workload.empty()) return part.workload;
  if (!target.submission.name.empty()) return target.submission.name;
  const std::string& path = question.target.path;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string OwnerOf(const Target& target) {
  const workload::Part& part = target.submission.parts[target.part];
  switch (target.submission.format) {
    case workload::Format::kKubernetes:
      return history::OwnerName(part.kind, part.name_space.empty() ? "default" : part.name_space,
                                part.workload);
    case workload::Format::kNomad:
      return history::OwnerName("nomad", part.workload, part.group);
    case workload::Format::kSbatch:
    case workload::Format::kSource:
      return {};
  }
  return {};
}

}  // namespace

std::string JobNameOf(const Question& question, const Target& target) {
  return JobName(question, target);
}

history::Query QueryFor(const Question& question, const Target& target) {
  std::vector<history::SourceText> files = {
      {.path = question.target.path, .role = question.target.role, .data = question.target.data}};
  for (const File& file : question.files)
    files.push_back({.path = file.path, .role = file.role, .data = file.data});
  history::Query query;
  query.fingerprint = history::MakeFingerprint(files, /*entry=*/0);
  query.local_user = question.local_user;
  query.job_name = JobName(question, target);
  query.owner = OwnerOf(target);
  return query;
}

}  // namespace expanse::intelligence::analyse
