#include "server/plane_trust.h"

#include <utility>

namespace expanse::server {

base::Result<std::unique_ptr<net::ConnectClient>> ControlClientOf(const PlaneLink& link) {
  return net::ConnectClient::Create({.base_url = link.control_url,
                                     .user_agent = "expanse-server",
                                     .ca_file = link.control_ca_file});
}

base::Result<std::unique_ptr<PlaneTrust>> PlaneTrust::Start(std::string plane,
                                                            const PlaneLink& link,
                                                            const net::TokenPolicy& policy,
                                                            base::Clock& clock,
                                                            base::MetricRegistry& metrics) {
  auto trust = std::unique_ptr<PlaneTrust>(new PlaneTrust);
  EXPANSE_ASSIGN_OR_RETURN(trust->client_, ControlClientOf(link));
  trust->source_ = std::make_unique<net::ControlTrustSource>(
      net::ControlTrustOptions{.control_url = link.control_url,
                               .plane = std::move(plane),
                               .plane_secret = link.plane_secret,
                               .fetch = {.ca_file = link.control_ca_file}},
      *trust->client_, clock);
  trust->authenticator_ = std::make_unique<net::JwksAuthenticator>(
      net::JwksAuthenticatorOptions{.policy = policy}, *trust->source_, clock, metrics);
  trust->authenticator_->Start();
  return trust;
}

base::Status PlaneTrust::Ready() const {
  if (authenticator_->Ready()) return {};
  return base::Fail(base::Code::kUnavailable, "server.no_trust",
                    "no keys fetched from the control plane yet");
}

void PlaneTrust::Stop() {
  if (authenticator_) authenticator_->Stop();
}

}  // namespace expanse::server
