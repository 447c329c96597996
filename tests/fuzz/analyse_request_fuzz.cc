// A whole `analyse` from the bytes of a request to the JSON of its answer, over no history and over
// a little: nothing crashes, what is answered can be sent, and a patch fits the target it is for.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/analyse/analyse.h"
#include "intelligence/analyse_proto.h"
#include "net/wire_body.h"
#include "workload/patch/unified_diff.h"

namespace {

using namespace expanse;

intelligence::history::Found SomeRuns() {
  intelligence::history::Found found;
  found.basis = intelligence::predict::Basis::kExactBundle;
  found.similarity = 1;
  for (int i = 0; i < 3; ++i) {
    intelligence::predict::Run run;
    run.execution_id = std::to_string(i);
    run.ending = i == 2 ? intelligence::predict::Ending::kOutOfMemory
                        : intelligence::predict::Ending::kSuccess;
    run.submitted_micros = i;
    run.requested = {.cpu_cores = 2, .memory_bytes = 4e9, .gpu_count = 1, .walltime_s = 3600};
    run.runtime_s = 100 + i;
    run.memory_peak_bytes = 1e9 + i;
    run.cpu_mean_cores = 1;
    found.runs.push_back(run);
    found.origins.push_back({.compute_id = "c"});
  }
  return found;
}

void Answer(const intelligence::analyse::Question& question,
            const intelligence::analyse::Target& target,
            const intelligence::history::Found& found) {
  const auto answer = intelligence::analyse::Compose(question, target, found);
  const auto artifact = intelligence::ArtifactOf(answer, {});
  const auto result = intelligence::ResultOf(answer, artifact);
  EXPANSE_CHECK(net::SerializeMessage(net::WireFormat::kJson, result).has_value());
  if (artifact)
    EXPANSE_CHECK(workload::ApplyUnifiedDiff(artifact->data, question.target.data).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  intelligence::v1::AnalyseRequest request;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  if (!net::ParseMessage(net::WireFormat::kJson, body, &request)) return 0;
  const auto question = intelligence::QuestionOf(request);
  if (!question) {
    EXPANSE_CHECK(question.error().code == base::Code::kInvalidArgument);
    return 0;
  }
  const auto target = intelligence::analyse::ReadTarget(*question);
  if (!target) {
    EXPANSE_CHECK(target.error().code == base::Code::kInvalidArgument);
    return 0;
  }
  Answer(*question, *target, {});
  Answer(*question, *target, SomeRuns());
  return 0;
}
