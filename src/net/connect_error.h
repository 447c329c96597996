// Errors on the wire as the Connect protocol spells them: JSON {code, message, details} under an
// HTTP status (https://connectrpc.com/docs/protocol#error-codes). Internal to net/. Thread-safe
// functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/caller.h"
#include "net/http.h"

namespace expanse::net {

// The status that carries an error with this code.
int HttpStatusOf(base::Code code);
// The code that a response stands for which is not a Connect error: a proxy's page, a load
// balancer's.
base::Code CodeOfHttpStatus(int status);

// The error as a response, its reason in an ErrorReason detail in front of `details`.
HttpResponse ErrorResponse(const base::Error& error, const std::vector<ErrorDetail>& details = {});
// Likewise with a status of its own (405, 413, 415 and so on).
HttpResponse ErrorResponse(int status, const base::Error& error);

struct DecodedError {
  base::Error error;
  std::vector<ErrorDetail> details;  // without the ErrorReason
};
// Reads an error body of whatever server. A body without a usable code takes the status's meaning;
// the reason is "client.protocol" for a body that is not a Connect error and "" for one without a
// reason.
DecodedError DecodeError(int status, std::string_view content_type, std::string_view body);

// Base64 of RFC 4648 section 4 without padding, as error details carry it.
std::string Base64Encode(std::string_view data);
// Accepts both alphabets, with padding or without.
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace expanse::net
