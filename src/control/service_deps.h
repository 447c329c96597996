// What the services of the control plane share. Internal to control/.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/result.h"
#include "base/time.h"
#include "control/failure_limiter.h"
#include "control/options.h"
#include "control/revocation_list.h"
#include "net/caller.h"
#include "net/connect_server.h"
#include "net/token.h"
#include "store/records/identity_store.h"

namespace expanse::control {

// References to what ControlPlane owns; all of it is thread-safe and outlives the services.
struct ServiceDeps {
  const ControlOptions& options;
  store::IdentityStore& store;
  base::Clock& clock;
  const net::TokenSigner& signer;
  RevocationList& revocations;
  FailureLimiter& limiter;
  base::MetricRegistry& metrics;
};

// An audit entry for what this call does; the caller of the method is the actor.
store::AuditEntry AuditOf(const net::CallContext& context, base::WallTime now,
                          std::string_view action, std::string_view subject,
                          std::string_view detail = {});

void ToProto(base::WallTime time, google::protobuf::Timestamp* out);

// Text that people chose (names of keys and computes): valid UTF-8 of 1 to 100 bytes without
// control characters, bidirectional overrides and outer white space. Fails with `reason`, naming
// `what`.
base::Status CheckName(std::string_view name, std::string_view what, std::string_view reason);
// Fails with control.id unless `id` is a UUID: everything that control names is.
base::Status CheckId(std::string_view id, std::string_view field);

// Adds a member function of a service as the handler of a method.
template <typename Service, typename Request, typename Response>
void AddMethod(net::ConnectRouter& router, std::string_view method, Service& service,
               base::Result<Response> (Service::*handler)(const net::CallContext&,
                                                          const Request&)) {
  router.Add<Request, Response>(
      method, [&service, handler](const net::CallContext& context, const Request& request) {
        return (service.*handler)(context, request);
      });
}

}  // namespace expanse::control
