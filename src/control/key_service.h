// expanse.control.v1.KeyService: a user's own personal keys.
#pragma once

#include "control/service_deps.h"
#include "expanse/control/v1/key_service.pb.h"

namespace expanse::control {

// Thread-safe. Users see and revoke their own keys only, whatever their role.
class KeyService {
 public:
  explicit KeyService(const ServiceDeps& deps) : deps_(deps) {}
  void AddTo(net::ConnectRouter& router);

  // Fails with key.name, key.too_many.
  base::Result<pb::CreateKeyResponse> CreateKey(const net::CallContext& context,
                                                const pb::CreateKeyRequest& request);
  base::Result<pb::ListKeysResponse> ListKeys(const net::CallContext& context,
                                              const pb::ListKeysRequest& request);
  // Fails with key.not_found.
  base::Result<pb::RevokeKeyResponse> RevokeKey(const net::CallContext& context,
                                                const pb::RevokeKeyRequest& request);

 private:
  const ServiceDeps& deps_;
};

}  // namespace expanse::control
