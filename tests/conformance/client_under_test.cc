// Our ConnectClient as a client for Connect's conformance suite: makes each call that it is told to
// and says what came of it.
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/worker_pool.h"
#include "conformance/framing.h"
#include "connectrpc/conformance/v1/client_compat.pb.h"
#include "connectrpc/conformance/v1/service.pb.h"
#include "net/connect_client.h"

namespace {

namespace suite = connectrpc::conformance::v1;
using namespace expanse;

// The suite's way of saying "no timeout"; our calls always have one.
constexpr std::chrono::milliseconds kPatience{30'000};

base::Result<std::unique_ptr<net::ConnectClient>> MakeClient(
    const suite::ClientCompatRequest& wanted, const base::TempDir& directory) {
  net::ConnectClientOptions options;
  const bool tls = !wanted.server_tls_cert().empty();
  options.base_url = std::string(tls ? "https" : "http") + "://" + wanted.host() + ":" +
                     std::to_string(wanted.port());
  options.format =
      wanted.codec() == suite::CODEC_JSON ? net::WireFormat::kJson : net::WireFormat::kProto;
  if (wanted.compression() == suite::COMPRESSION_GZIP)
    options.compression = net::Compression::kGzip;
  if (wanted.compression() == suite::COMPRESSION_ZSTD)
    options.compression = net::Compression::kZstd;
  options.compress_min = 0;
  options.get = wanted.use_get_http_method();
  options.timeout = kPatience;
  options.announce_timeout = wanted.has_timeout_ms();
  if (wanted.message_receive_limit() > 0) options.max_response = wanted.message_receive_limit();
  if (tls) {
    options.ca_file = base::JoinPath(directory.path(), "ca.pem");
    EXPANSE_RETURN_IF_ERROR(
        base::WriteFileAtomically(options.ca_file, wanted.server_tls_cert(), 0644));
  }
  return net::ConnectClient::Create(std::move(options));
}

template <typename Request, typename Response>
base::Status Call(net::ConnectClient& client, const suite::ClientCompatRequest& wanted,
                  const net::CallOptions& options, suite::ClientResponseResult* result) {
  Request request;
  if (wanted.request_messages_size() != 1 || !wanted.request_messages(0).UnpackTo(&request)) {
    return base::Fail(base::Code::kInvalidArgument, "suite.request",
                      "expected one request message of the method's type");
  }
  auto response = client.Call<Response>(wanted.service() + "." + wanted.method(), request, options);
  if (!response) return std::unexpected(std::move(response).error());
  if constexpr (requires { response->payload(); }) *result->add_payloads() = response->payload();
  return {};
}

base::Status Dispatch(net::ConnectClient& client, const suite::ClientCompatRequest& wanted,
                      const net::CallOptions& options, suite::ClientResponseResult* result) {
  if (wanted.method() == "Unary")
    return Call<suite::UnaryRequest, suite::UnaryResponse>(client, wanted, options, result);
  if (wanted.method() == "IdempotentUnary") {
    return Call<suite::IdempotentUnaryRequest, suite::IdempotentUnaryResponse>(client, wanted,
                                                                               options, result);
  }
  return Call<suite::UnimplementedRequest, suite::UnimplementedResponse>(client, wanted, options,
                                                                         result);
}

void Perform(const suite::ClientCompatRequest& wanted, suite::ClientCompatResponse* out) {
  out->set_test_name(wanted.test_name());
  const auto directory = base::TempDir::Create("conformance");
  auto client =
      directory
          ? MakeClient(wanted, *directory)
          : base::Result<std::unique_ptr<net::ConnectClient>>(std::unexpected(directory.error()));
  if (!client) {
    out->mutable_error()->set_message(client.error().message);
    return;
  }
  net::CallMetadata metadata;
  std::stop_source stop;
  net::CallOptions options;
  options.response = &metadata;
  options.stop = stop.get_token();
  if (wanted.has_timeout_ms()) options.timeout = std::chrono::milliseconds(wanted.timeout_ms());
  conformance::AddAll(wanted.request_headers(), options.headers);
  std::jthread canceller;
  if (wanted.has_cancel()) {
    canceller = std::jthread([&stop, after = wanted.cancel().after_close_send_ms()] {
      std::this_thread::sleep_for(std::chrono::milliseconds(after));  // when the suite says
      stop.request_stop();
    });
  }
  suite::ClientResponseResult& result = *out->mutable_response();
  const base::Status status = Dispatch(**client, wanted, options, &result);
  *result.mutable_response_headers() = conformance::ToProto(metadata.headers);
  *result.mutable_response_trailers() = conformance::ToProto(metadata.trailers);
  if (status) return;
  result.mutable_error()->set_code(static_cast<suite::Code>(status.error().code));
  result.mutable_error()->set_message(status.error().message);
  for (const auto& detail : metadata.error_details)
    *result.mutable_error()->add_details() = conformance::ToAny(detail);
}

}  // namespace

int main() {
  std::mutex output;
  base::WorkerPool pool(/*threads=*/8, /*queue_limit=*/4096);
  suite::ClientCompatRequest wanted;
  while (conformance::ReadMessage(&wanted)) {
    const auto work = [wanted, &output] {
      suite::ClientCompatResponse response;
      Perform(wanted, &response);
      std::scoped_lock lock(output);
      conformance::WriteMessage(response);
    };
    if (!pool.TrySubmit(work)) work();
  }
  pool.Drain();
  return 0;
}
