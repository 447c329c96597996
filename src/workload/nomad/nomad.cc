#include "workload/nomad/nomad.h"

#include <utility>

#include "workload/nomad/jobspec.h"

namespace expanse::workload {

Parsed<Submission> ParseNomad(std::string_view text, const ParseOptions& options) {
  auto jobspec = nomad::ReadJobspec(text, options);
  if (!jobspec) return std::unexpected(std::move(jobspec).error());
  return std::move(jobspec->submission);
}

}  // namespace expanse::workload
