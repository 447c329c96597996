#include "server/data_runtime.h"

#include <algorithm>

#include "base/files.h"

namespace expanse::server {

base::Result<std::unique_ptr<DataRuntime>> DataRuntime::Start(const ServerOptions& options,
                                                              std::string control_url,
                                                              std::string plane_secret,
                                                              base::Clock& clock,
                                                              base::MetricRegistry& metrics) {
  auto runtime = std::unique_ptr<DataRuntime>(new DataRuntime);
  EXPANSE_RETURN_IF_ERROR(runtime->OpenStores(options, clock));
  EXPANSE_RETURN_IF_ERROR(runtime->ConnectControl(options, std::move(control_url),
                                                  std::move(plane_secret), clock, metrics));
  EXPANSE_RETURN_IF_ERROR(runtime->Serve(options, clock, metrics));
  return runtime;
}

base::Status DataRuntime::OpenStores(const ServerOptions& options, base::Clock& clock) {
  const std::string directory = base::JoinPath(options.state_dir, "data");
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory, 0700));
  EXPANSE_ASSIGN_OR_RETURN(records_, store::SqliteEvidenceStore::Open(
                                         {.path = base::JoinPath(directory, "records.db")}, clock));
  EXPANSE_ASSIGN_OR_RETURN(
      series_, store::SqliteSeriesStore::Open({.path = base::JoinPath(directory, "series.db")}));
  EXPANSE_ASSIGN_OR_RETURN(
      blobs_, store::DirectoryBlobStore::Open(base::JoinPath(directory, "blobs"), clock));
  return {};
}

base::Status DataRuntime::ConnectControl(const ServerOptions& options, std::string control_url,
                                         std::string plane_secret, base::Clock& clock,
                                         base::MetricRegistry& metrics) {
  const net::ConnectClientOptions client{.base_url = control_url,
                                         .user_agent = "expanse-server",
                                         .ca_file = options.data_control_ca_file};
  EXPANSE_ASSIGN_OR_RETURN(trust_client_, net::ConnectClient::Create(client));
  trust_ = std::make_unique<net::ControlTrustSource>(
      net::ControlTrustOptions{.control_url = control_url,
                               .plane = "data",
                               .plane_secret = plane_secret,
                               .fetch = {.ca_file = options.data_control_ca_file}},
      *trust_client_, clock);
  authenticator_ = std::make_unique<net::JwksAuthenticator>(
      net::JwksAuthenticatorOptions{.policy = options.control.tokens}, *trust_, clock, metrics);
  EXPANSE_ASSIGN_OR_RETURN(auto exchange_client, net::ConnectClient::Create(client));
  control_ = data::CreateControlClient(std::move(exchange_client), std::move(plane_secret), clock);
  authenticator_->Start();
  return {};
}

base::Status DataRuntime::Serve(const ServerOptions& options, base::Clock& clock,
                                base::MetricRegistry& metrics) {
  EXPANSE_ASSIGN_OR_RETURN(plane_, data::DataPlane::Create(options.data, *records_, *series_,
                                                           *blobs_, *control_, clock, metrics));
  net::HttpServerOptions http = options.http;
  http.name = "data";
  http.address = options.data_listen.address;
  http.port = options.data_listen.port;
  server_ = std::make_unique<PlaneServer>(
      std::move(http),
      net::ConnectOptions{
          .max_message = std::max(net::ConnectOptions().max_message, options.data.max_batch_bytes),
          .cors_origins = options.cors_origins},
      *authenticator_, metrics, [this]() -> base::Status {
        if (!authenticator_->Ready()) {
          return base::Fail(base::Code::kUnavailable, "server.no_trust",
                            "no keys fetched from the control plane yet");
        }
        // Any read shows whether the store answers.
        if (auto ok = records_->Watermark("ready", "ready"); !ok)
          return std::unexpected(ok.error());
        return {};
      });
  plane_->AddMethods(server_->router());
  EXPANSE_RETURN_IF_ERROR(server_->Start());
  plane_->Start();
  return {};
}

void DataRuntime::Drain(std::chrono::milliseconds deadline) {
  if (server_) server_->Drain(deadline);
  if (plane_) plane_->Stop();
  if (authenticator_) authenticator_->Stop();
}

}  // namespace expanse::server
