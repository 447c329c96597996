// Message bodies of Connect calls: protobuf or JSON, compressed or not. Internal to net/; used by
// server and client. Thread-safe functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/connect_client.h"

namespace google::protobuf {
class Message;
}

namespace expanse::net {

std::string_view FormatName(WireFormat format);       // "proto", "json"
std::string_view CompressionName(Compression value);  // "identity", "gzip", "zstd"
// The inverse; an empty name is identity.
std::optional<Compression> CompressionFromName(std::string_view name);
// The format of a content type "application/json; charset=utf-8"; nothing for other types.
std::optional<WireFormat> FormatOfContentType(std::string_view content_type);

std::string Compress(Compression compression, std::string_view body);
// Fails like base/compress.h.
base::Result<std::string> Decompress(Compression compression, std::string_view body,
                                     std::size_t limit);

// Fails with message.malformed (invalid_argument), naming the field where the JSON parser knows it.
// Unknown fields are ignored, so that older and newer versions understand each other.
base::Status ParseMessage(WireFormat format, std::string_view body, google::protobuf::Message* out);
// JSON keeps the proto names of fields. Fails with message.unserializable (internal).
base::Result<std::string> SerializeMessage(WireFormat format,
                                           const google::protobuf::Message& message);

// The encoding that the peer likes best of what we have (Accept-Encoding of RFC 9110
// section 12.5.3).
Compression Negotiate(std::string_view accept_encoding);

}  // namespace expanse::net
