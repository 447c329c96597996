#include "server/intelligence_runtime.h"

#include <algorithm>

#include "base/files.h"

namespace expanse::server {
namespace {

// A target, its files and the rest of a question; in JSON their bytes are a third larger.
constexpr std::size_t kLargestQuestion = std::size_t{8} << 20;

}  // namespace

base::Result<std::unique_ptr<IntelligenceRuntime>> IntelligenceRuntime::Start(
    const ServerOptions& options, EvidenceStores& stores, base::Clock& clock,
    base::MetricRegistry& metrics) {
  auto runtime = std::unique_ptr<IntelligenceRuntime>(new IntelligenceRuntime);
  EXPANSE_RETURN_IF_ERROR(runtime->Open(options, stores, clock, metrics));
  EXPANSE_ASSIGN_OR_RETURN(runtime->trust_,
                           PlaneTrust::Start("intelligence", options.intelligence_link,
                                             options.control.tokens, clock, metrics));
  EXPANSE_RETURN_IF_ERROR(runtime->Serve(options, metrics));
  return runtime;
}

base::Status IntelligenceRuntime::Open(const ServerOptions& options, EvidenceStores& stores,
                                       base::Clock& clock, base::MetricRegistry& metrics) {
  const std::string directory = base::JoinPath(options.state_dir, "intelligence");
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory, 0700));
  EXPANSE_ASSIGN_OR_RETURN(
      runs_, store::SqliteRunStore::Open({.path = base::JoinPath(directory, "runs.db")}));
  EXPANSE_ASSIGN_OR_RETURN(history_,
                           intelligence::history::IndexedHistory::Open(
                               {.path = base::JoinPath(directory, "history.db")},
                               {*stores.records, *stores.series, *stores.blobs}, clock, metrics));
  analyser_ = std::make_unique<intelligence::AnalyseWork>(options.intelligence.target_chance,
                                                          *history_, *runs_, clock);
  EXPANSE_ASSIGN_OR_RETURN(runbooks_, intelligence::SiteRunbooks::Create(
                                          options.intelligence.runbook_directory,
                                          options.intelligence.runbook_poll, clock, metrics));
  diagnoser_ = std::make_unique<intelligence::DiagnoseWork>(
      intelligence::diagnose_case::Stores{*stores.records, *stores.blobs, *stores.series,
                                          *history_},
      *runbooks_, *runs_);
  EXPANSE_ASSIGN_OR_RETURN(plane_, intelligence::IntelligencePlane::Create(
                                       options.intelligence, *runs_,
                                       {*analyser_, *diagnoser_, *runbooks_}, clock, metrics));
  automatic_ = std::make_unique<intelligence::AutomaticDiagnosis>(
      options.intelligence,
      intelligence::AutomaticDiagnosis::Parts{*runs_, *stores.records, *diagnoser_, clock, metrics},
      [this] { return plane_->CallersWait(); });
  return {};
}

base::Status IntelligenceRuntime::Serve(const ServerOptions& options,
                                        base::MetricRegistry& metrics) {
  net::HttpServerOptions http = options.http;
  http.name = "intelligence";
  http.address = options.intelligence_listen.address;
  http.port = options.intelligence_listen.port;
  // Those that wait for an answer must not keep others from being heard.
  http.worker_threads += static_cast<int>(options.intelligence.workers);
  server_ = std::make_unique<PlaneServer>(
      std::move(http),
      net::ConnectOptions{.max_message = kLargestQuestion, .cors_origins = options.cors_origins},
      trust_->authenticator(), metrics, [this]() -> base::Status {
        EXPANSE_RETURN_IF_ERROR(trust_->Ready());
        // Any read shows whether the store answers.
        if (auto ok = runs_->CountQueued(); !ok) return std::unexpected(ok.error());
        return {};
      });
  plane_->AddMethods(server_->router());
  EXPANSE_RETURN_IF_ERROR(plane_->Start());
  history_->Start();
  runbooks_->Start();
  automatic_->Start();
  return server_->Start();
}

void IntelligenceRuntime::Drain(std::chrono::milliseconds deadline) {
  if (server_) server_->Drain(deadline);
  if (automatic_) automatic_->Stop();
  if (runbooks_) runbooks_->Stop();
  if (plane_) plane_->Stop();
  if (history_) history_->Stop();
  if (trust_) trust_->Stop();
}

}  // namespace expanse::server
