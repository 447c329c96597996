#include "data/install_exchange.h"

#include <utility>

#include "base/crypto.h"
#include "base/log.h"
#include "expanse/data/v1/ingest_service.pb.h"

namespace expanse::data {
namespace {

using base::Code;
constexpr std::string_view kPrefix = "exp_install_";

// Whether the control plane spoke about the install token or its compute, rather than failed or
// refused us.
bool IsAboutToken(const base::Error& error) {
  return error.reason.starts_with("install_token.") || error.reason.starts_with("compute.");
}

}  // namespace

InstallExchange::InstallExchange(const DataOptions& options, ControlClient& control,
                                 base::Clock& clock, base::MetricRegistry& metrics)
    : control_(control),
      clock_(clock),
      bucket_(options.exchanges_per_second, options.exchanges_per_second * 10, clock.Mono()),
      exchanged_(metrics.GetCounter("expanse_install_tokens_total",
                                    "Install tokens by what became of them.",
                                    {{"result", "exchanged"}})),
      refused_(metrics.GetCounter("expanse_install_tokens_total",
                                  "Install tokens by what became of them.",
                                  {{"result", "refused"}})) {}

base::Result<v1::ExchangeInstallTokenResponse> InstallExchange::Exchange(
    const net::CallContext& context, const v1::ExchangeInstallTokenRequest& request) {
  if (!base::IsSecret(request.install_token(), kPrefix)) {
    refused_.Add();
    return base::Fail(Code::kInvalidArgument, "install_token.malformed",
                      "that is not an install token: they start with exp_install_ and have 43 "
                      "characters after it; "
                      "copy it again from `expanse compute register`");
  }
  if (!common::v1::SourceType_IsValid(request.type())) {
    refused_.Add();
    return base::Fail(Code::kInvalidArgument, "install_token.type",
                      "the compute type is not known");
  }
  {
    const std::lock_guard lock(mutex_);
    if (!bucket_.CanTake(1, clock_.Mono())) {
      return base::Fail(Code::kResourceExhausted, "install_token.rate",
                        "too many installs at the moment; try again in a few seconds");
    }
    bucket_.Take(1);
  }
  auto burned = control_.BurnInstallToken(request.install_token(),
                                          static_cast<evidence::SourceType>(request.type()));
  if (!burned) {
    refused_.Add();
    if (IsAboutToken(burned.error())) return std::unexpected(std::move(burned).error());
    base::LogWarn("data.control_unreachable", {{"request_id", context.request_id},
                                               {"code", base::CodeName(burned.error().code)},
                                               {"reason", burned.error().reason},
                                               {"message", burned.error().message}});
    return base::Fail(
        Code::kUnavailable, "control.unreachable",
        "the control plane cannot check the install token now; try again with the same token");
  }
  exchanged_.Add();
  base::LogInfo("data.install_token_exchanged",
                {{"compute_id", burned->compute_id}, {"peer", context.peer}});
  v1::ExchangeInstallTokenResponse response;
  response.set_compute_id(burned->compute_id);
  response.set_compute_name(burned->compute_name);
  response.set_organisation_id(burned->organisation_id);
  response.set_type(static_cast<common::v1::SourceType>(burned->type));
  response.set_credential(burned->credential);
  return response;
}

}  // namespace expanse::data
