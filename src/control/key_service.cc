#include "control/key_service.h"

#include <algorithm>

#include "base/crypto.h"
#include "control/secrets.h"

namespace expanse::control {
namespace {

using base::Code;
using base::Fail;
using base::Result;

constexpr std::int64_t kMaxLiveKeys = 50;
constexpr std::size_t kHintChars =
    4;  // after the prefix: tells keys apart, tells nothing of the rest

void Fill(const store::PersonalKey& key, v1::Key* out) {
  out->set_key_id(key.id);
  out->set_name(key.name);
  out->set_hint(key.hint);
  ToProto(key.created_at, out->mutable_created_at());
  if (key.last_used_at) ToProto(*key.last_used_at, out->mutable_last_used_at());
  if (key.revoked_at) ToProto(*key.revoked_at, out->mutable_revoked_at());
}

}  // namespace

void KeyService::AddTo(net::ConnectRouter& router) {
  const std::string prefix = "expanse.control.v1.KeyService.";
  AddMethod(router, prefix + "CreateKey", *this, &KeyService::CreateKey);
  AddMethod(router, prefix + "ListKeys", *this, &KeyService::ListKeys);
  AddMethod(router, prefix + "RevokeKey", *this, &KeyService::RevokeKey);
}

Result<v1::CreateKeyResponse> KeyService::CreateKey(const net::CallContext& context,
                                                    const v1::CreateKeyRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckName(request.name(), "the name of a key", "key.name"));
  EXPANSE_ASSIGN_OR_RETURN(const auto keys, deps_.store.Keys(context.caller.subject));
  if (std::ranges::count_if(keys, [](const auto& key) { return !key.revoked_at; }) >=
      kMaxLiveKeys) {
    return Fail(Code::kResourceExhausted, "key.too_many",
                "you have 50 keys; revoke one that is not used");
  }
  const base::WallTime now = deps_.clock.Now();
  const std::string secret = base::NewSecret(kUserKeyPrefix);
  store::PersonalKey key;
  key.id = base::NewUuid(now);
  key.user_id = context.caller.subject;
  key.name = request.name();
  key.hint = secret.substr(0, kUserKeyPrefix.size() + kHintChars);
  key.created_at = now;
  EXPANSE_RETURN_IF_ERROR(deps_.store.CreateKey(
      key, base::Sha256Hex(secret), AuditOf(context, now, "key.create", key.id, key.name)));
  v1::CreateKeyResponse response;
  Fill(key, response.mutable_key());
  response.set_secret(secret);
  return response;
}

Result<v1::ListKeysResponse> KeyService::ListKeys(const net::CallContext& context,
                                                  const v1::ListKeysRequest&) {
  EXPANSE_ASSIGN_OR_RETURN(const auto keys, deps_.store.Keys(context.caller.subject));
  v1::ListKeysResponse response;
  for (const store::PersonalKey& key : keys) Fill(key, response.add_keys());
  return response;
}

Result<v1::RevokeKeyResponse> KeyService::RevokeKey(const net::CallContext& context,
                                                    const v1::RevokeKeyRequest& request) {
  EXPANSE_RETURN_IF_ERROR(CheckId(request.key_id(), "key_id"));
  const base::WallTime now = deps_.clock.Now();
  EXPANSE_ASSIGN_OR_RETURN(
      const auto sessions,
      deps_.store.RevokeKey(context.caller.subject, request.key_id(),
                            AuditOf(context, now, "key.revoke", request.key_id())));
  for (const std::string& session : sessions) deps_.revocations.Add(session, now);
  return v1::RevokeKeyResponse();
}

}  // namespace expanse::control
