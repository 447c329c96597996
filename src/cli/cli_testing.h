// What the tests of the command line share: a terminal that records, a platform that answers with
// what the test puts in it, golden files.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/metrics.h"
#include "base/time.h"
#include "cli/app.h"
#include "expanse/control/v1/auth_service.pb.h"
#include "expanse/control/v1/compute_service.pb.h"
#include "expanse/control/v1/key_service.pb.h"
#include "expanse/data/v1/ingest_service.pb.h"
#include "expanse/data/v1/query_service.pb.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "net/connect_server.h"
#include "net/http_server.h"

namespace expanse::cli {

// Answers questions from a list; end of input after it. Not thread-safe.
class FakeTerminal final : public Terminal {
 public:
  void Out(std::string_view text) override { out += text; }
  void Err(std::string_view text) override { err += text; }
  base::Status Flush() override { return flush_status; }
  bool OutIsTerminal() const override { return width > 0; }
  bool ErrIsTerminal() const override { return width > 0; }
  bool CanAsk() const override { return can_ask; }
  std::size_t Width() const override { return width; }
  bool Colour() const override { return colour; }
  base::Result<std::string> AskLine(std::string_view prompt) override;
  base::Result<std::string> AskSecret(std::string_view prompt) override;
  base::Result<std::string> ReadInput() override { return input; }
  base::Result<std::string> ReadBytes(std::size_t limit) override {
    if (input.size() <= limit) return input;
    return base::Fail(base::Code::kInvalidArgument, "files.too_large", "too large");
  }

  std::string out;
  std::string err;
  std::string input;
  std::deque<std::string> answers;
  int secrets_asked = 0;
  std::size_t width = 0;  // 0: a pipe
  bool can_ask = false;
  bool colour = false;
  base::Status flush_status;
};

// All planes on one loopback server, speaking the real protocol with the real permission checks.
// Answers are the public members; set them before the call. Requests are kept. Thread-safe towards
// its own handlers.
class FakePlatform final : public net::Authenticator {
 public:
  FakePlatform();
  ~FakePlatform() override;

  base::Result<net::Caller> Authenticate(std::string_view bearer) override;
  const std::string& url() const { return url_; }

  // Ends the life of every access token now, as its expiry would.
  void ExpireAccessTokens();
  // The session's refresh token that works now; using an older one ends the session.
  std::string refresh_token() const;
  bool session_ended() const { return session_ended_; }
  int refreshes() const { return refreshes_; }
  int calls() const { return calls_; }

  // Fails the next calls of a method (its last part) with this error, until cleared.
  void FailWith(const std::string& method, base::Error error);

  std::vector<control::v1::Compute> computes;
  std::vector<control::v1::Key> keys;
  std::vector<data::v1::Execution> executions;
  std::map<std::string, data::v1::QueryMetricResponse> metrics;  // by name
  std::vector<data::v1::LogTailView> logs;
  data::v1::GetComputeHealthResponse health;
  data::v1::GetClusterStateResponse cluster;
  intelligence::v1::DiagnoseResponse diagnosis;  // the answer to every question why
  std::vector<intelligence::v1::DiagnoseRequest> diagnosed;
  std::vector<intelligence::v1::FailureClass> failure_classes;  // those asked for are given
  std::vector<intelligence::v1::ListFailureClassesRequest> classes_asked;
  intelligence::v1::ListRunbooksResponse runbooks;
  intelligence::v1::GetRunbookResponse runbook;  // of the one with its summary's id
  intelligence::v1::AnalyseResponse analysis;    // the answer to every question
  std::vector<intelligence::v1::Run> runs;
  std::vector<intelligence::v1::Artifact> artefacts;
  control::v1::Identity identity;
  std::string console_url;
  bool has_intelligence = true;  // whether control names an intelligence plane
  common::v1::SourceType exchanged_type = common::v1::SOURCE_TYPE_HOST;  // of the install token
  std::size_t page_limit = 1000;                                         // most executions per page
  std::chrono::seconds access_life{600};

  // The last request of each kind.
  control::v1::LoginRequest login;
  control::v1::RegisterComputeRequest registered;
  data::v1::ListExecutionsRequest listed;
  std::vector<data::v1::QueryMetricRequest> queried;
  data::v1::GetExecutionRequest got;
  data::v1::GetClusterStateRequest cluster_asked;
  std::vector<intelligence::v1::AnalyseRequest> analysed;
  intelligence::v1::ListRunsRequest runs_listed;
  data::v1::ExchangeInstallTokenRequest exchanged;
  std::string revoked;

 private:
  template <typename Request, typename Response>
  void Answer(const std::string& method,
              std::function<base::Result<Response>(const Request&)> answer);
  void AddAuth();
  void AddComputes();
  void AddQueries();
  void AddIntelligence();
  void AddDiagnosis();
  control::v1::AccessToken NewAccessToken();

  mutable std::mutex mutex_;  // guards what handlers change
  base::SystemClock clock_;
  base::MetricRegistry registry_;
  std::unique_ptr<net::ConnectRouter> router_;
  std::unique_ptr<net::HttpServer> server_;
  std::string url_;
  std::map<std::string, base::Error> failures_;
  std::string access_token_;
  int generation_ = 0;
  std::atomic<bool> session_ended_ = false;
  std::atomic<int> refreshes_ = 0;
  std::atomic<int> calls_ = 0;
};

// The system's clock, but with the wall time that a test has set, if it has.
class PinnedClock final : public base::Clock {
 public:
  base::WallTime Now() override { return pinned ? *pinned : system_.Now(); }
  base::MonoTime Mono() override { return system_.Mono(); }
  bool WaitFor(std::stop_token stop, base::Duration duration) override {
    return system_.WaitFor(std::move(stop), duration);
  }
  std::optional<base::WallTime> pinned;

 private:
  base::SystemClock system_;
};

// A command line of its own: a temporary home, no environment but what is set, short timeouts.
struct CliHarness {
  CliHarness();
  // Runs `expanse <arguments>` on a fresh terminal state (out and err emptied).
  int Run(const std::vector<std::string>& arguments);
  // Signs in to the platform with a good key; aborts the test program when that fails.
  void SignIn(const FakePlatform& platform);

  base::TempDir home;
  FakeTerminal terminal;
  PinnedClock clock;
  App app;
};

// Compares with testdata/<name> beside the tests; with EXPANSE_UPDATE_GOLDEN=1 writes it instead.
void ExpectGolden(const std::string& directory, const std::string& name, const std::string& text);

}  // namespace expanse::cli
