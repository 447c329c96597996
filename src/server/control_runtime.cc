#include "server/control_runtime.h"

#include "base/files.h"
#include "base/log.h"

namespace expanse::server {
namespace {

using namespace std::chrono_literals;

std::string ControlDirectory(const std::string& state_dir) {
  return base::JoinPath(state_dir, "control");
}
std::string UrlFile(const std::string& state_dir) {
  return base::JoinPath(ControlDirectory(state_dir), "url");
}

// Until the console exists, the page behind a sign-in link says how to use it. The link's secret is
// in its fragment, which no browser sends.
Document SignInPage() {
  return {"text/html; charset=utf-8",
          "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Expanse sign-in</title>"
          "<h1>One-time sign-in link</h1><p>This version has no web console yet. Use the link on "
          "the command line:</p>"
          "<pre>expanse login --sign-in-link '&lt;this page's whole address&gt;'</pre>"
          "<p>It works once. Afterwards <code>expanse keys create</code> makes a personal "
          "key.</p></html>\n"};
}

}  // namespace

std::string LastControlUrl(const std::string& state_dir) {
  return base::ReadFile(UrlFile(state_dir), 4096).value_or("");
}

base::Result<std::unique_ptr<ControlRuntime>> ControlRuntime::Open(const ServerOptions& options,
                                                                   base::Clock& clock,
                                                                   base::MetricRegistry& metrics) {
  const std::string directory = ControlDirectory(options.state_dir);
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory, 0700));
  auto runtime = std::unique_ptr<ControlRuntime>(new ControlRuntime);
  EXPANSE_ASSIGN_OR_RETURN(
      runtime->store_, store::SqliteIdentityStore::Open(base::JoinPath(directory, "identity.db")));
  control::ControlOptions control = options.control;
  if (control.keys.file.empty()) control.keys.directory = base::JoinPath(directory, "keys");
  EXPANSE_ASSIGN_OR_RETURN(
      runtime->plane_,
      control::ControlPlane::Create(std::move(control), *runtime->store_, clock, metrics));
  return runtime;
}

base::Result<std::unique_ptr<ControlRuntime>> ControlRuntime::Start(const ServerOptions& options,
                                                                    base::Clock& clock,
                                                                    base::MetricRegistry& metrics) {
  EXPANSE_ASSIGN_OR_RETURN(auto runtime, Open(options, clock, metrics));
  EXPANSE_RETURN_IF_ERROR(runtime->Serve(options, clock, metrics));
  return runtime;
}

base::Status ControlRuntime::Serve(const ServerOptions& options, base::Clock& clock,
                                   base::MetricRegistry& metrics) {
  net::HttpServerOptions http = options.http;
  http.name = "control";
  http.address = options.control_listen.address;
  http.port = options.control_listen.port;
  server_ = std::make_unique<PlaneServer>(
      std::move(http), net::ConnectOptions{.cors_origins = options.cors_origins},
      plane_->authenticator(), metrics, [this]() -> base::Status {
        if (auto ok = store_->HasOrganisation(); !ok) {
          return std::unexpected(ok.error());
        }
        return {};
      });
  plane_->AddMethods(server_->router());
  server_->AddDocument("/.well-known/jwks.json",
                       [this] { return Document{"application/json", plane_->Jwks()}; });
  server_->AddDocument("/sign-in", SignInPage);
  EXPANSE_RETURN_IF_ERROR(server_->Start());
  EXPANSE_RETURN_IF_ERROR(
      base::WriteFileAtomically(UrlFile(options.state_dir), options.control.public_url, 0600));
  maintenance_ = std::jthread([this, &clock](const std::stop_token& stop) {
    while (clock.WaitFor(stop, 60s)) {
      if (auto done = plane_->Maintain(); !done)
        base::LogWarn("control maintenance failed", {{"error", done.error().message}});
    }
  });
  return {};
}

void ControlRuntime::Drain(std::chrono::milliseconds deadline) {
  if (server_) server_->Drain(deadline);
  maintenance_ = {};
}

}  // namespace expanse::server
