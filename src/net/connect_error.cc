#include "net/connect_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/crypto.h"
#include "base/text.h"
#include "expanse/common/v1/error.pb.h"

namespace expanse::net {
namespace {

using base::Code;
using Json = nlohmann::json;

constexpr std::size_t kMaxDetails = 32;
constexpr std::size_t kMaxJsonDepth = 64;

// nlohmann's parser recurses only in its SAX consumer's destructor; a bound keeps that shallow.
bool TooDeep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) return true;
    }
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return false;
}

std::string StringMember(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

void ReadDetail(const Json& detail, DecodedError& out) {
  if (!detail.is_object()) return;
  std::string type = StringMember(detail, "type");
  if (const auto slash = type.rfind('/'); slash != std::string::npos) type.erase(0, slash + 1);
  auto value = Base64Decode(StringMember(detail, "value"));
  if (type.empty() || !value) return;
  common::v1::ErrorReason reason;
  if (type == reason.GetDescriptor()->full_name() && out.error.reason.empty() &&
      reason.ParseFromString(*value)) {
    out.error.reason = reason.reason();
    return;
  }
  if (out.details.size() < kMaxDetails) out.details.push_back({std::move(type), std::move(*value)});
}

base::Error NotConnect(int status, std::string_view content_type) {
  return {CodeOfHttpStatus(status), "client.protocol",
          fmt::format(
              "the server answered HTTP {} with {} instead of a Connect response: is this the "
              "right address, or does a proxy answer in its place?",
              status, content_type.empty() ? "no content" : base::EscapeForDisplay(content_type))};
}

}  // namespace

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kCancelled:
      return 499;
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
      return 400;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kAborted:
      return 409;
    case Code::kPermissionDenied:
      return 403;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kUnauthenticated:
      return 401;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kDataLoss:
      break;
  }
  return 500;
}

Code CodeOfHttpStatus(int status) {
  switch (status) {
    case 400:
      return Code::kInternal;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return Code::kUnavailable;
    default:
      return Code::kUnknown;
  }
}

HttpResponse ErrorResponse(const base::Error& error, const std::vector<ErrorDetail>& details) {
  Json body = {{"code", base::CodeName(error.code)}};
  if (!error.message.empty()) body["message"] = base::ToValidUtf8(error.message);
  Json list = Json::array();
  if (!error.reason.empty()) {
    common::v1::ErrorReason reason;
    reason.set_reason(error.reason);
    list.push_back({{"type", reason.GetDescriptor()->full_name()},
                    {"value", Base64Encode(reason.SerializeAsString())},
                    {"debug", {{"reason", error.reason}}}});
  }
  for (const ErrorDetail& detail : details) {
    list.push_back({{"type", detail.type}, {"value", Base64Encode(detail.value)}});
  }
  if (!list.empty()) body["details"] = std::move(list);
  HttpResponse response;
  response.status = HttpStatusOf(error.code);
  response.headers.Add("Content-Type", "application/json");
  response.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

HttpResponse ErrorResponse(int status, const base::Error& error) {
  HttpResponse response = ErrorResponse(error);
  response.status = status;
  return response;
}

DecodedError DecodeError(int status, std::string_view content_type, std::string_view body) {
  DecodedError out;
  const std::string type =
      base::ToLower(base::Trim(content_type.substr(0, content_type.find(';'))));
  Json json;
  if (type == "application/json" && !TooDeep(body)) {
    json = Json::parse(body, /*callback=*/nullptr, /*allow_exceptions=*/false);
  }
  if (!json.is_object()) {
    out.error = NotConnect(status, content_type);
    return out;
  }
  const std::string name = StringMember(json, "code");
  const Code code = base::CodeFromName(name);
  const bool known = base::CodeName(code) == name;
  out.error.code = known ? code : CodeOfHttpStatus(status);
  out.error.message = StringMember(json, "message");
  if (const auto details = json.find("details"); details != json.end() && details->is_array()) {
    for (const Json& detail : *details) ReadDetail(detail, out);
  }
  if (!known && out.error.message.empty()) out.error = NotConnect(status, content_type);
  return out;
}

std::string Base64Encode(std::string_view data) {
  std::string text = base::Base64UrlEncode(data);
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  return text;
}

std::optional<std::string> Base64Decode(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string url(text);
  std::replace(url.begin(), url.end(), '+', '-');
  std::replace(url.begin(), url.end(), '/', '_');
  return base::Base64UrlDecode(url);
}

}  // namespace expanse::net
