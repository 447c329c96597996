// The one thing that protobuf's JSON parser lets through when it ignores unknown fields: an enum
// name that does not exist reads as "not set". In a request that turns a filter with a typing error
// into no filter at all, so servers look again.
#pragma once

#include <string_view>

#include "base/result.h"

namespace google::protobuf {
class Descriptor;
}

namespace expanse::net {

// `json` was accepted as a message of `type`. Fails with message.malformed (invalid_argument),
// naming field and value, if a string stands for an enum value that `type` does not have. Unknown
// fields are passed over.
base::Status CheckEnumNames(std::string_view json, const google::protobuf::Descriptor& type);

}  // namespace expanse::net
