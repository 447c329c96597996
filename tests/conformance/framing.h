// How the conformance suite talks to the programs under test: on standard input and output, each
// message behind its size in four bytes, big-endian.
#pragma once

#include <google/protobuf/any.pb.h>
#include <google/protobuf/message.h>

#include "connectrpc/conformance/v1/service.pb.h"
#include "net/caller.h"

namespace expanse::conformance {

// False at the end of input. Not thread-safe.
bool ReadMessage(google::protobuf::Message* out);
// False when the other end is gone. Not thread-safe.
bool WriteMessage(const google::protobuf::Message& message);

// Fields of one name together, as the suite lists them.
google::protobuf::RepeatedPtrField<connectrpc::conformance::v1::Header> ToProto(
    const net::Headers& headers);
void AddAll(const google::protobuf::RepeatedPtrField<connectrpc::conformance::v1::Header>& from,
            net::Headers& to);

net::ErrorDetail FromAny(const google::protobuf::Any& any);
google::protobuf::Any ToAny(const net::ErrorDetail& detail);

}  // namespace expanse::conformance
