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
  base::Result<v1::CreateKeyResponse> CreateKey(const net::CallContext& context,
                                                const v1::CreateKeyRequest& request);
  base::Result<v1::ListKeysResponse> ListKeys(const net::CallContext& context,
                                              const v1::ListKeysRequest& request);
  // Fails with key.not_found.
  base::Result<v1::RevokeKeyResponse> RevokeKey(const net::CallContext& context,
                                                const v1::RevokeKeyRequest& request);

 private:
  const ServiceDeps& deps_;
};

}  // namespace expanse::control
