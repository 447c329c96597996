#include "intelligence/intelligence_plane.h"

#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "net/connect_server.h"

namespace expanse::intelligence {
namespace {

// Adds a method that is a member function of one of the parts.
template <typename Part, typename Request, typename Response>
void Add(net::ConnectRouter& router, const std::string& method, Part& part,
         base::Result<Response> (Part::*handler)(const net::CallContext&, const Request&)) {
  router.Add<Request, Response>(
      "expanse.intelligence.v1.IntelligenceService." + method,
      [&part, handler](const net::CallContext& context, const Request& request) {
        return (part.*handler)(context, request);
      });
}

}  // namespace

IntelligencePlane::IntelligencePlane(const IntelligenceOptions& options, store::RunStore& runs,
                                     Engines engines, base::Clock& clock,
                                     base::MetricRegistry& metrics)
    : options_(options),
      metrics_(metrics),
      executor_(options.workers, options.backlog),
      analyse_(options_, runs, engines.analyser, executor_, clock, metrics_),
      diagnose_(options_, runs, engines.diagnoser, executor_, clock, metrics_),
      queue_(options_, runs, clock, metrics_,
             [this](const store::RunRow& run, const std::stop_token& stop) {
               return analyse_.Work(run, stop);
             }),
      run_service_(runs),
      runbooks_(engines.runbooks),
      failure_classes_(runs.labels()),
      retention_(options_, runs, clock, metrics) {
  analyse_.SetQueue(&queue_);
}

base::Result<std::unique_ptr<IntelligencePlane>> IntelligencePlane::Create(
    const IntelligenceOptions& options, store::RunStore& runs, Engines engines, base::Clock& clock,
    base::MetricRegistry& metrics) {
  // Settings check their ranges; this is for options that were put together in code.
  if (options.workers == 0 || options.queue_workers == 0 || options.backlog == 0 ||
      options.running_per_user == 0 || options.run_timeout.count() <= 0 ||
      options.retention_interval.count() <= 0) {
    return base::Fail(base::Code::kInvalidArgument, "intelligence.options",
                      "bounds and intervals of the intelligence plane must not be 0");
  }
  return std::unique_ptr<IntelligencePlane>(
      new IntelligencePlane(options, runs, engines, clock, metrics));
}

void IntelligencePlane::AddMethods(net::ConnectRouter& router) {
  Add(router, "Analyse", analyse_, &AnalyseService::Analyse);
  Add(router, "Diagnose", diagnose_, &DiagnoseService::Diagnose);
  Add(router, "ListFailureClasses", failure_classes_, &FailureClassService::ListFailureClasses);
  Add(router, "ListRunbooks", runbooks_, &RunbookService::ListRunbooks);
  Add(router, "GetRunbook", runbooks_, &RunbookService::GetRunbook);
  Add(router, "GetRun", run_service_, &RunService::GetRun);
  Add(router, "ListRuns", run_service_, &RunService::ListRuns);
  Add(router, "GetArtifact", run_service_, &RunService::GetArtifact);
}

base::Status IntelligencePlane::Start() {
  EXPANSE_RETURN_IF_ERROR(queue_.Start());
  retention_.Start();
  return {};
}

void IntelligencePlane::Stop() {
  queue_.Stop();
  retention_.Stop();
  executor_.Drain();
}

}  // namespace expanse::intelligence
