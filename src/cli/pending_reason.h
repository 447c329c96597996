// Why a job waits, in words, and what its user can do about it. Slurm's reason words are at
// https://slurm.schedmd.com/job_reason_codes.html; limits of associations and QOSs are put together
// from parts (AssocGrpCpuLimit, QOSMaxGRESPerUser) and are taken apart here. Pure.
#pragma once

#include <string>
#include <string_view>

namespace expanse::cli {

struct PendingReason {
  std::string
      waits_for;       // a few words, "jobs of higher priority"; a word that is not known as it is
  std::string advice;  // a sentence; empty where there is none
};

// `reason` as the scheduler writes it, also with details behind a comma
// ("ReqNodeNotAvail, UnavailableNodes:n[1-4]").
PendingReason ExplainPending(std::string_view reason);

}  // namespace expanse::cli
