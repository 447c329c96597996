#include "server/data_runtime.h"

#include <algorithm>

namespace expanse::server {

base::Result<std::unique_ptr<DataRuntime>> DataRuntime::Start(const ServerOptions& options,
                                                              EvidenceStores& stores,
                                                              base::Clock& clock,
                                                              base::MetricRegistry& metrics) {
  auto runtime = std::unique_ptr<DataRuntime>(new DataRuntime);
  EXPANSE_ASSIGN_OR_RETURN(
      runtime->trust_,
      PlaneTrust::Start("data", options.data_link, options.control.tokens, clock, metrics));
  EXPANSE_ASSIGN_OR_RETURN(auto exchange_client, ControlClientOf(options.data_link));
  runtime->control_ =
      data::CreateControlClient(std::move(exchange_client), options.data_link.plane_secret, clock);
  EXPANSE_RETURN_IF_ERROR(runtime->Serve(options, stores, clock, metrics));
  return runtime;
}

base::Status DataRuntime::Serve(const ServerOptions& options, EvidenceStores& stores,
                                base::Clock& clock, base::MetricRegistry& metrics) {
  EXPANSE_ASSIGN_OR_RETURN(
      plane_, data::DataPlane::Create(options.data, *stores.records, *stores.series, *stores.blobs,
                                      *control_, clock, metrics));
  net::HttpServerOptions http = options.http;
  http.name = "data";
  http.address = options.data_listen.address;
  http.port = options.data_listen.port;
  server_ = std::make_unique<PlaneServer>(
      std::move(http),
      net::ConnectOptions{
          .max_message = std::max(net::ConnectOptions().max_message, options.data.max_batch_bytes),
          .cors_origins = options.cors_origins},
      trust_->authenticator(), metrics, [this, &stores]() -> base::Status {
        EXPANSE_RETURN_IF_ERROR(trust_->Ready());
        // Any read shows whether the store answers.
        if (auto ok = stores.records->Watermark("ready", "ready"); !ok)
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
  if (trust_) trust_->Stop();
}

}  // namespace expanse::server
