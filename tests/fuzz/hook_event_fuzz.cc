// What lies in a node's event directory: no bytes may crash the parser, and what it accepts must be
// an event of a job.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "schedulers/slurm/node/cgroup_discovery.h"
#include "schedulers/slurm/node/gpu_grants.h"
#include "schedulers/slurm/node/hook_event.h"
#include "schedulers/slurm/node/node_claim.h"
#include "schedulers/slurm/node/node_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace expanse::schedulers::slurm;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto event = ParseHookEvent(bytes)) {
    if (event->job_id == 0) std::abort();
    (void)GrantedGpuUuids(*event);
    const auto numbers = GrantedGpuNumbers(*event);
    if (numbers && numbers->size() > 1024) std::abort();
    const auto report = ReadReport(MakeReport(*event));
    if (!report || report->job.job_id != event->job_id) std::abort();
  }
  if (const auto path = ParseJobPath(bytes)) {
    if (path->job.job_id == 0 && path->job.sluid.empty()) std::abort();
  }
  if (const auto marker = ParseMarker(bytes)) {
    if (ParseMarker(FormatMarker(*marker)) != marker) std::abort();
  }
  (void)ParseGpuInformation(bytes);
  return 0;
}
