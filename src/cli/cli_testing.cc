#include "cli/cli_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/log.h"
#include "cli/render.h"

namespace expanse::cli {
namespace {

template <typename T>
T Or(base::Result<T> result, std::string_view what) {
  if (!result) {
    fmt::print(stderr, "{}: {}\n", what, result.error().message);
    std::abort();
  }
  return std::move(*result);
}

}  // namespace

base::Result<std::string> FakeTerminal::AskLine(std::string_view prompt) {
  err += prompt;
  if (answers.empty()) return base::Fail(base::Code::kCancelled, "cli.interrupted", "interrupted");
  std::string answer = answers.front();
  answers.pop_front();
  return answer;
}

base::Result<std::string> FakeTerminal::AskSecret(std::string_view prompt) {
  ++secrets_asked;
  auto answer = AskLine(prompt);
  err += '\n';
  return answer;
}

FakePlatform::FakePlatform() {
  base::ConfigureLog(base::LogLevel::kOff, base::LogFormat::kText);  // its access log is noise
  identity.set_user_id("0191e7a0-0000-7000-8000-00000000aaaa");
  identity.set_user_name("Ada");
  identity.set_organisation_id("0191e7a0-0000-7000-8000-00000000bbbb");
  identity.set_organisation_name("Example Lab");
  identity.set_role("Owner");
  identity.add_submit_users("ada");
  router_ = std::make_unique<net::ConnectRouter>(net::ConnectOptions{}, *this, registry_);
  AddAuth();
  AddComputes();
  AddQueries();
  AddIntelligence();
  AddDiagnosis();
  net::HttpServerOptions options;
  options.name = "fake";
  options.address = "127.0.0.1";
  server_ =
      Or(net::HttpServer::Start(
             options, [this](const net::HttpRequest& request) { return router_->Handle(request); },
             registry_),
         "starting the fake platform");
  url_ = fmt::format("http://127.0.0.1:{}", server_->port());
}

FakePlatform::~FakePlatform() { server_->Drain(std::chrono::milliseconds(200)); }

base::Result<net::Caller> FakePlatform::Authenticate(std::string_view bearer) {
  const std::lock_guard lock(mutex_);
  if (bearer.empty() || bearer != access_token_) {
    return base::Fail(base::Code::kUnauthenticated, "token.expired",
                      "the access token has expired");
  }
  net::Caller caller;
  caller.kind = net::CallerKind::kUser;
  caller.subject = identity.user_id();
  caller.organisation_id = identity.organisation_id();
  caller.permissions = {"computes.read", "computes.manage", "executions.read", "intelligence.use"};
  caller.expires_at = clock_.Now() + std::chrono::minutes(10);
  return caller;
}

template <typename Request, typename Response>
void FakePlatform::Answer(const std::string& method,
                          std::function<base::Result<Response>(const Request&)> answer) {
  router_->Add<Request, Response>(
      "expanse." + method,
      [this, method, answer = std::move(answer)](const net::CallContext&,
                                                 const Request& request) -> base::Result<Response> {
        const std::lock_guard lock(mutex_);
        ++calls_;
        const auto failure = failures_.find(method.substr(method.rfind('.') + 1));
        if (failure != failures_.end()) return std::unexpected(failure->second);
        return answer(request);
      });
}

control::v1::AccessToken FakePlatform::NewAccessToken() {
  ++generation_;
  access_token_ = fmt::format("access-{}", generation_);
  control::v1::AccessToken token;
  token.set_token(access_token_);
  ToTimestamp(clock_.Now() + access_life, token.mutable_expires_at());
  return token;
}

void FakePlatform::ExpireAccessTokens() {
  const std::lock_guard lock(mutex_);
  access_token_.clear();
}

std::string FakePlatform::refresh_token() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("refresh-{}", generation_);
}

void FakePlatform::FailWith(const std::string& method, base::Error error) {
  const std::lock_guard lock(mutex_);
  failures_[method] = std::move(error);
}

void FakePlatform::AddAuth() {
  Answer<control::v1::LoginRequest, control::v1::LoginResponse>(
      "control.v1.AuthService.Login",
      [this](const control::v1::LoginRequest& request) -> base::Result<control::v1::LoginResponse> {
        login = request;
        if (request.api_key() != "exp_user_good" && request.sign_in_token() != "exp_link_good") {
          return base::Fail(base::Code::kUnauthenticated, "auth.key", "the key is not known");
        }
        session_ended_ = false;
        control::v1::LoginResponse response;
        *response.mutable_access() = NewAccessToken();
        response.set_refresh_token(fmt::format("refresh-{}", generation_));
        ToTimestamp(clock_.Now() + std::chrono::hours(24 * 30),
                    response.mutable_refresh_expires_at());
        *response.mutable_identity() = identity;
        return response;
      });
  Answer<control::v1::RefreshRequest, control::v1::RefreshResponse>(
      "control.v1.AuthService.Refresh",
      [this](const control::v1::RefreshRequest& request)
          -> base::Result<control::v1::RefreshResponse> {
        ++refreshes_;
        if (request.refresh_token() != fmt::format("refresh-{}", generation_))
          session_ended_ = true;
        if (session_ended_) {
          return base::Fail(base::Code::kUnauthenticated, "auth.session_ended", "sign in again");
        }
        if (!request.organisation_id().empty())
          identity.set_organisation_id(request.organisation_id());
        control::v1::RefreshResponse response;
        *response.mutable_access() = NewAccessToken();
        response.set_refresh_token(fmt::format("refresh-{}", generation_));
        ToTimestamp(clock_.Now() + std::chrono::hours(24 * 30),
                    response.mutable_refresh_expires_at());
        *response.mutable_identity() = identity;
        return response;
      });
  Answer<control::v1::LogoutRequest, control::v1::LogoutResponse>(
      "control.v1.AuthService.Logout",
      [this](const control::v1::LogoutRequest&) -> base::Result<control::v1::LogoutResponse> {
        session_ended_ = true;
        access_token_.clear();
        return control::v1::LogoutResponse();
      });
  Answer<control::v1::WhoAmIRequest, control::v1::WhoAmIResponse>(
      "control.v1.AuthService.WhoAmI",
      [this](const control::v1::WhoAmIRequest&) -> base::Result<control::v1::WhoAmIResponse> {
        control::v1::WhoAmIResponse response;
        *response.mutable_identity() = identity;
        ToTimestamp(clock_.Now() + access_life, response.mutable_access_expires_at());
        return response;
      });
  Answer<control::v1::MintComputeTokenRequest, control::v1::MintComputeTokenResponse>(
      "control.v1.AuthService.MintComputeToken",
      [](const control::v1::MintComputeTokenRequest& request)
          -> base::Result<control::v1::MintComputeTokenResponse> {
        if (request.credential() != "exp_compute_good") {
          return base::Fail(base::Code::kUnauthenticated, "auth.credential",
                            "the credential is not known");
        }
        return control::v1::MintComputeTokenResponse();
      });
  Answer<control::v1::GetEndpointsRequest, control::v1::GetEndpointsResponse>(
      "control.v1.DiscoveryService.GetEndpoints",
      [this](const control::v1::GetEndpointsRequest&)
          -> base::Result<control::v1::GetEndpointsResponse> {
        control::v1::GetEndpointsResponse response;
        response.set_control_plane_url(url_);
        response.set_data_plane_url(url_);
        if (has_intelligence) response.set_intelligence_plane_url(url_);
        response.set_console_url(console_url);
        return response;
      });
  Answer<control::v1::CreateKeyRequest, control::v1::CreateKeyResponse>(
      "control.v1.KeyService.CreateKey",
      [](const control::v1::CreateKeyRequest& request)
          -> base::Result<control::v1::CreateKeyResponse> {
        control::v1::CreateKeyResponse response;
        response.mutable_key()->set_key_id("0191e7a0-0000-7000-8000-00000000cccc");
        response.mutable_key()->set_name(request.name());
        response.set_secret("exp_user_new");
        return response;
      });
  Answer<control::v1::ListKeysRequest, control::v1::ListKeysResponse>(
      "control.v1.KeyService.ListKeys",
      [this](const control::v1::ListKeysRequest&) -> base::Result<control::v1::ListKeysResponse> {
        control::v1::ListKeysResponse response;
        response.mutable_keys()->Assign(keys.begin(), keys.end());
        return response;
      });
  Answer<control::v1::RevokeKeyRequest, control::v1::RevokeKeyResponse>(
      "control.v1.KeyService.RevokeKey",
      [this](const control::v1::RevokeKeyRequest& request)
          -> base::Result<control::v1::RevokeKeyResponse> {
        revoked = request.key_id();
        return control::v1::RevokeKeyResponse();
      });
}

void FakePlatform::AddComputes() {
  Answer<control::v1::RegisterComputeRequest, control::v1::RegisterComputeResponse>(
      "control.v1.ComputeService.RegisterCompute",
      [this](const control::v1::RegisterComputeRequest& request)
          -> base::Result<control::v1::RegisterComputeResponse> {
        registered = request;
        control::v1::RegisterComputeResponse response;
        response.mutable_compute()->set_compute_id("0191e7a0-0000-7000-8000-00000000dddd");
        response.mutable_compute()->set_name(request.name().empty() ? "host-20270115"
                                                                    : request.name());
        response.mutable_compute()->set_type(request.type());
        response.mutable_install_token()->set_token("exp_install_new");
        response.mutable_install_token()->mutable_expires_at()->set_seconds(1'800'003'600);
        response.set_control_plane_url("https://control.example.org");
        response.set_data_plane_url("https://data.example.org/it's");
        return response;
      });
  Answer<control::v1::ReissueInstallTokenRequest, control::v1::ReissueInstallTokenResponse>(
      "control.v1.ComputeService.ReissueInstallToken",
      [](const control::v1::ReissueInstallTokenRequest& request)
          -> base::Result<control::v1::ReissueInstallTokenResponse> {
        control::v1::ReissueInstallTokenResponse response;
        response.mutable_compute()->set_compute_id(request.compute_id());
        response.mutable_compute()->set_type(common::v1::SOURCE_TYPE_SLURM);
        response.mutable_install_token()->set_token("exp_install_again");
        response.set_control_plane_url("https://control.example.org");
        response.set_data_plane_url("https://data.example.org");
        return response;
      });
  Answer<control::v1::ListComputesRequest, control::v1::ListComputesResponse>(
      "control.v1.ComputeService.ListComputes",
      [this](const control::v1::ListComputesRequest& request)
          -> base::Result<control::v1::ListComputesResponse> {
        control::v1::ListComputesResponse response;
        for (const auto& compute : computes) {
          if (compute.state() == common::v1::COMPUTE_STATE_REVOKED && !request.include_revoked())
            continue;
          *response.add_computes() = compute;
        }
        return response;
      });
  const auto find = [this](const std::string& id) -> base::Result<control::v1::Compute> {
    for (const auto& compute : computes) {
      if (compute.compute_id() == id) return compute;
    }
    return base::Fail(base::Code::kNotFound, "compute.not_found", "no compute with this id");
  };
  Answer<control::v1::GetComputeRequest, control::v1::GetComputeResponse>(
      "control.v1.ComputeService.GetCompute",
      [find](const control::v1::GetComputeRequest& request)
          -> base::Result<control::v1::GetComputeResponse> {
        control::v1::GetComputeResponse response;
        EXPANSE_ASSIGN_OR_RETURN(*response.mutable_compute(), find(request.compute_id()));
        return response;
      });
  Answer<control::v1::RevokeComputeRequest, control::v1::RevokeComputeResponse>(
      "control.v1.ComputeService.RevokeCompute",
      [this, find](const control::v1::RevokeComputeRequest& request)
          -> base::Result<control::v1::RevokeComputeResponse> {
        control::v1::RevokeComputeResponse response;
        EXPANSE_ASSIGN_OR_RETURN(*response.mutable_compute(), find(request.compute_id()));
        revoked = request.compute_id();
        return response;
      });
  Answer<data::v1::ExchangeInstallTokenRequest, data::v1::ExchangeInstallTokenResponse>(
      "data.v1.IngestService.ExchangeInstallToken",
      [this](const data::v1::ExchangeInstallTokenRequest& request)
          -> base::Result<data::v1::ExchangeInstallTokenResponse> {
        exchanged = request;
        if (request.install_token() != "exp_install_good") {
          return base::Fail(base::Code::kUnauthenticated, "install.token",
                            "the install token is not known");
        }
        data::v1::ExchangeInstallTokenResponse response;
        response.set_compute_id("0191e7a0-0000-7000-8000-00000000dddd");
        response.set_compute_name("bench");
        response.set_organisation_id(identity.organisation_id());
        response.set_type(exchanged_type);
        response.set_credential("exp_compute_good");
        return response;
      });
}

void FakePlatform::AddQueries() {
  Answer<data::v1::ListExecutionsRequest, data::v1::ListExecutionsResponse>(
      "data.v1.QueryService.ListExecutions",
      [this](const data::v1::ListExecutionsRequest& request)
          -> base::Result<data::v1::ListExecutionsResponse> {
        listed = request;
        std::size_t at = 0;
        if (!request.page_token().empty()) at = std::stoul(request.page_token());
        const std::size_t end =
            std::min({at + request.page_size(), at + page_limit, executions.size()});
        data::v1::ListExecutionsResponse response;
        for (; at < end; ++at) *response.add_executions() = executions[at];
        if (at < executions.size()) response.set_next_page_token(std::to_string(at));
        return response;
      });
  Answer<data::v1::GetExecutionRequest, data::v1::GetExecutionResponse>(
      "data.v1.QueryService.GetExecution",
      [this](const data::v1::GetExecutionRequest& request)
          -> base::Result<data::v1::GetExecutionResponse> {
        got = request;
        for (const auto& execution : executions) {
          if (execution.execution_id() == request.execution_id() ||
              (!request.native_id().empty() && execution.native_id() == request.native_id())) {
            data::v1::GetExecutionResponse response;
            *response.mutable_execution() = execution;
            return response;
          }
        }
        return base::Fail(base::Code::kNotFound, "execution.not_found", "no such execution");
      });
  Answer<data::v1::ListMetricsRequest, data::v1::ListMetricsResponse>(
      "data.v1.QueryService.ListMetrics",
      [this](const data::v1::ListMetricsRequest& request)
          -> base::Result<data::v1::ListMetricsResponse> {
        data::v1::ListMetricsResponse response;
        for (const auto& [name, metric] : metrics) {
          for (const auto& series : metric.series()) {
            if (request.source().empty() || series.info().source() == request.source()) {
              *response.add_series() = series.info();
            }
          }
        }
        return response;
      });
  Answer<data::v1::QueryMetricRequest, data::v1::QueryMetricResponse>(
      "data.v1.QueryService.QueryMetric",
      [this](const data::v1::QueryMetricRequest& request)
          -> base::Result<data::v1::QueryMetricResponse> {
        queried.push_back(request);
        const auto found = metrics.find(request.metric());
        return found == metrics.end() ? data::v1::QueryMetricResponse() : found->second;
      });
  Answer<data::v1::GetLogTailRequest, data::v1::GetLogTailResponse>(
      "data.v1.QueryService.GetLogTail",
      [this](const data::v1::GetLogTailRequest& request)
          -> base::Result<data::v1::GetLogTailResponse> {
        data::v1::GetLogTailResponse response;
        for (const auto& log : logs) {
          if (request.stream().empty() || request.stream() == log.stream())
            *response.add_streams() = log;
        }
        return response;
      });
  Answer<data::v1::GetComputeHealthRequest, data::v1::GetComputeHealthResponse>(
      "data.v1.QueryService.GetComputeHealth",
      [this](const data::v1::GetComputeHealthRequest&)
          -> base::Result<data::v1::GetComputeHealthResponse> { return health; });
  Answer<data::v1::GetClusterStateRequest, data::v1::GetClusterStateResponse>(
      "data.v1.QueryService.GetClusterState",
      [this](const data::v1::GetClusterStateRequest& request)
          -> base::Result<data::v1::GetClusterStateResponse> {
        cluster_asked = request;
        return cluster;
      });
}

void FakePlatform::AddIntelligence() {
  namespace v1 = intelligence::v1;
  Answer<v1::AnalyseRequest, v1::AnalyseResponse>(
      "intelligence.v1.IntelligenceService.Analyse",
      [this](const v1::AnalyseRequest& request) -> base::Result<v1::AnalyseResponse> {
        analysed.push_back(request);
        return analysis;
      });
  Answer<v1::GetRunRequest, v1::GetRunResponse>(
      "intelligence.v1.IntelligenceService.GetRun",
      [this](const v1::GetRunRequest& request) -> base::Result<v1::GetRunResponse> {
        v1::GetRunResponse response;
        for (const v1::Run& run : runs) {
          if (run.run_id() == request.run_id()) *response.mutable_run() = run;
        }
        if (response.has_run()) return response;
        return base::Fail(base::Code::kNotFound, "run.not_found", "no such run");
      });
  Answer<v1::ListRunsRequest, v1::ListRunsResponse>(
      "intelligence.v1.IntelligenceService.ListRuns",
      [this](const v1::ListRunsRequest& request) -> base::Result<v1::ListRunsResponse> {
        runs_listed = request;
        std::size_t at = 0;
        if (!request.page_token().empty()) at = std::stoul(request.page_token());
        const std::size_t end = std::min({at + request.page_size(), at + page_limit, runs.size()});
        v1::ListRunsResponse response;
        for (; at < end; ++at) *response.add_runs() = runs[at];
        if (at < runs.size()) response.set_next_page_token(std::to_string(at));
        return response;
      });
  Answer<v1::GetArtifactRequest, v1::GetArtifactResponse>(
      "intelligence.v1.IntelligenceService.GetArtifact",
      [this](const v1::GetArtifactRequest& request) -> base::Result<v1::GetArtifactResponse> {
        v1::GetArtifactResponse response;
        for (const v1::Artifact& artefact : artefacts) {
          if (artefact.artifact_id() == request.artifact_id())
            *response.mutable_artifact() = artefact;
        }
        if (response.has_artifact()) return response;
        return base::Fail(base::Code::kNotFound, "artifact.not_found", "no such artefact");
      });
}

void FakePlatform::AddDiagnosis() {
  namespace v1 = intelligence::v1;
  Answer<v1::DiagnoseRequest, v1::DiagnoseResponse>(
      "intelligence.v1.IntelligenceService.Diagnose",
      [this](const v1::DiagnoseRequest& request) -> base::Result<v1::DiagnoseResponse> {
        diagnosed.push_back(request);
        return diagnosis;
      });
  Answer<v1::ListFailureClassesRequest, v1::ListFailureClassesResponse>(
      "intelligence.v1.IntelligenceService.ListFailureClasses",
      [this](const v1::ListFailureClassesRequest& request)
          -> base::Result<v1::ListFailureClassesResponse> {
        classes_asked.push_back(request);
        v1::ListFailureClassesResponse response;
        for (const std::string& id : request.execution_ids()) {
          for (const v1::FailureClass& known : failure_classes)
            if (known.execution_id() == id) *response.add_classes() = known;
        }
        return response;
      });
  Answer<v1::ListRunbooksRequest, v1::ListRunbooksResponse>(
      "intelligence.v1.IntelligenceService.ListRunbooks",
      [this](const v1::ListRunbooksRequest&) -> base::Result<v1::ListRunbooksResponse> {
        return runbooks;
      });
  Answer<v1::GetRunbookRequest, v1::GetRunbookResponse>(
      "intelligence.v1.IntelligenceService.GetRunbook",
      [this](const v1::GetRunbookRequest& request) -> base::Result<v1::GetRunbookResponse> {
        if (request.id() == runbook.summary().id()) return runbook;
        return base::Fail(base::Code::kNotFound, "runbook.not_found", "there is no such runbook");
      });
}

CliHarness::CliHarness()
    : home(Or(base::TempDir::Create("expanse-cli"), "temporary directory")),
      app{.terminal = terminal,
          .clock = clock,
          .environment = {},
          .state_directory = home.path() + "/.expanse",
          .timeout = std::chrono::milliseconds(3000),
          .connect_timeout = std::chrono::milliseconds(1000),
          .run_command = {}} {}

int CliHarness::Run(const std::vector<std::string>& arguments) {
  terminal.out.clear();
  terminal.err.clear();
  return RunCli(app, arguments);
}

void CliHarness::SignIn(const FakePlatform& platform) {
  app.environment["EXPANSE_API_KEY"] = "exp_user_good";
  const int code = Run({"login", "--control-plane", platform.url()});
  app.environment.erase("EXPANSE_API_KEY");
  if (code != 0) {
    fmt::print(stderr, "sign-in: {}\n", terminal.err);
    std::abort();
  }
}

void ExpectGolden(const std::string& directory, const std::string& name, const std::string& text) {
  const std::string path = directory + "/" + name;
  if (const char* update = std::getenv("EXPANSE_UPDATE_GOLDEN");
      update != nullptr && *update == '1') {
    ASSERT_TRUE(base::WriteFileAtomically(path, text, 0644)) << path;
    return;
  }
  const auto expected = base::ReadFile(path);
  ASSERT_TRUE(expected) << path << ": " << expected.error().message
                        << "; EXPANSE_UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(*expected, text) << path << " differs; EXPANSE_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace expanse::cli
