#include "conformance/framing.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/files.h"
#include "base/text.h"

namespace expanse::conformance {
namespace {

constexpr std::size_t kMaxMessage = 64U << 20;
constexpr std::string_view kTypePrefix = "type.googleapis.com/";

bool ReadExactly(std::size_t count, std::string* out) {
  out->resize(count);
  std::size_t have = 0;
  while (have < count) {
    const auto size = ::read(STDIN_FILENO, out->data() + have, count - have);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    have += static_cast<std::size_t>(size);
  }
  return true;
}

}  // namespace

bool ReadMessage(google::protobuf::Message* out) {
  std::string bytes;
  if (!ReadExactly(4, &bytes)) return false;
  std::size_t size = 0;
  for (char c : bytes) size = (size << 8) | static_cast<unsigned char>(c);
  return size <= kMaxMessage && ReadExactly(size, &bytes) && out->ParseFromString(bytes);
}

bool WriteMessage(const google::protobuf::Message& message) {
  const std::string body = message.SerializeAsString();
  std::string bytes;
  for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(body.size() >> shift);
  return base::WriteFd(STDOUT_FILENO, bytes + body).has_value();
}

google::protobuf::RepeatedPtrField<connectrpc::conformance::v1::Header> ToProto(
    const net::Headers& headers) {
  google::protobuf::RepeatedPtrField<connectrpc::conformance::v1::Header> out;
  for (const auto& [name, value] : headers.fields()) {
    connectrpc::conformance::v1::Header* header = nullptr;
    for (auto& one : out) {
      if (base::ToLower(one.name()) == base::ToLower(name)) header = &one;
    }
    if (header == nullptr) {
      header = out.Add();
      header->set_name(name);
    }
    header->add_value(value);
  }
  return out;
}

void AddAll(const google::protobuf::RepeatedPtrField<connectrpc::conformance::v1::Header>& from,
            net::Headers& to) {
  for (const auto& header : from) {
    for (const auto& value : header.value()) to.Add(header.name(), value);
  }
}

net::ErrorDetail FromAny(const google::protobuf::Any& any) {
  return {any.type_url().substr(any.type_url().rfind('/') + 1), any.value()};
}

google::protobuf::Any ToAny(const net::ErrorDetail& detail) {
  google::protobuf::Any any;
  any.set_type_url(std::string(kTypePrefix) + detail.type);
  any.set_value(detail.value);
  return any;
}

}  // namespace expanse::conformance
