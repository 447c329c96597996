#include "control/service_deps.h"

#include "base/crypto.h"
#include "base/text.h"

namespace expanse::control {
namespace {

using base::Code;
using base::Fail;

constexpr std::size_t kMaxName = 100;
constexpr std::size_t kMaxAuditText = 256;

std::string_view ActorKind(net::CallerKind kind) {
  switch (kind) {
    case net::CallerKind::kAnonymous:
      return "anonymous";
    case net::CallerKind::kUser:
      return "user";
    case net::CallerKind::kCompute:
      return "compute";
    case net::CallerKind::kPlane:
      return "plane";
  }
  return "";
}

// Request ids and peers come from outside; the trail keeps them short and readable.
std::string Clean(std::string_view text) {
  return base::EscapeForDisplay(text.substr(0, kMaxAuditText));
}

}  // namespace

store::AuditEntry AuditOf(const net::CallContext& context, base::WallTime now,
                          std::string_view action, std::string_view subject,
                          std::string_view detail) {
  store::AuditEntry entry;
  entry.at = now;
  entry.organisation_id = context.caller.organisation_id;
  entry.actor_kind = ActorKind(context.caller.kind);
  entry.actor_id = context.caller.subject;
  entry.action = action;
  entry.subject = subject;
  entry.detail = Clean(detail);
  entry.peer = Clean(context.peer);
  entry.request_id = Clean(context.request_id);
  return entry;
}

void ToProto(base::WallTime time, google::protobuf::Timestamp* out) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  out->set_seconds(seconds.time_since_epoch().count());
  out->set_nanos(static_cast<std::int32_t>((time - seconds).count() * 1000));
}

base::Status CheckName(std::string_view name, std::string_view what, std::string_view reason) {
  const auto refuse = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, std::string(reason),
                std::string(what) + " " + std::string(why));
  };
  if (name.empty()) return refuse("must not be empty");
  if (name.size() > kMaxName) return refuse("must not be longer than 100 bytes");
  if (!base::IsValidUtf8(name)) return refuse("must be UTF-8");
  if (base::EscapeForDisplay(name) != name) return refuse("must not contain control characters");
  if (base::Trim(name) != name) return refuse("must not begin or end with a space");
  return {};
}

base::Status CheckId(std::string_view id, std::string_view field) {
  if (base::IsUuid(id)) return {};
  return Fail(Code::kInvalidArgument, "control.id", std::string(field) + " must be a UUID");
}

}  // namespace expanse::control
