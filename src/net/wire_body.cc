#include "net/wire_body.h"

#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <exception>

#include "base/compress.h"
#include "base/text.h"

namespace expanse::net {
namespace {

using base::Code;
namespace json = google::protobuf::util;

constexpr std::size_t kMaxComplaint = 300;  // a parser may quote what it was given

base::Error Malformed(const google::protobuf::Message& message, std::string_view why) {
  return {
      Code::kInvalidArgument, "message.malformed",
      fmt::format("the body is not a valid {}{}{}", message.GetDescriptor()->full_name(),
                  why.empty() ? "" : ": ", base::EscapeForDisplay(why.substr(0, kMaxComplaint)))};
}

// The q value of one Accept-Encoding element, in thousandths; 1000 when it has none.
int Quality(std::string_view parameters) {
  for (std::string_view parameter : base::Split(parameters, ';')) {
    parameter = base::Trim(parameter);
    if (parameter.starts_with("q=") || parameter.starts_with("Q=")) {
      const auto value = base::ParseDouble(parameter.substr(2));
      return value && *value >= 0 && *value <= 1 ? static_cast<int>(*value * 1000) : 0;
    }
  }
  return 1000;
}

}  // namespace

std::string_view FormatName(WireFormat format) {
  return format == WireFormat::kJson ? "json" : "proto";
}

std::string_view CompressionName(Compression value) {
  switch (value) {
    case Compression::kGzip:
      return "gzip";
    case Compression::kZstd:
      return "zstd";
    case Compression::kIdentity:
      break;
  }
  return "identity";
}

std::optional<Compression> CompressionFromName(std::string_view name) {
  const std::string lower = base::ToLower(base::Trim(name));
  if (lower.empty() || lower == "identity") return Compression::kIdentity;
  if (lower == "gzip") return Compression::kGzip;
  if (lower == "zstd") return Compression::kZstd;
  return std::nullopt;
}

std::optional<WireFormat> FormatOfContentType(std::string_view content_type) {
  const std::string type =
      base::ToLower(base::Trim(content_type.substr(0, content_type.find(';'))));
  if (type == "application/json") return WireFormat::kJson;
  if (type == "application/proto") return WireFormat::kProto;
  return std::nullopt;
}

std::string Compress(Compression compression, std::string_view body) {
  switch (compression) {
    case Compression::kGzip:
      return base::GzipCompress(body);
    case Compression::kZstd:
      return base::ZstdCompress(body);
    case Compression::kIdentity:
      break;
  }
  return std::string(body);
}

base::Result<std::string> Decompress(Compression compression, std::string_view body,
                                     std::size_t limit) {
  switch (compression) {
    case Compression::kGzip:
      return base::GzipDecompress(body, limit);
    case Compression::kZstd:
      return base::ZstdDecompress(body, limit);
    case Compression::kIdentity:
      break;
  }
  if (body.size() > limit) {
    return base::Fail(Code::kResourceExhausted, "compress.too_large",
                      fmt::format("the message is larger than {} bytes", limit));
  }
  return std::string(body);
}

base::Status ParseMessage(WireFormat format, std::string_view body,
                          google::protobuf::Message* out) {
  if (format == WireFormat::kProto) {
    if (!out->ParseFromArray(body.data(), static_cast<int>(body.size()))) {
      return std::unexpected(Malformed(*out, {}));
    }
    return {};
  }
  json::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  try {
    const auto status = json::JsonStringToMessage(
        google::protobuf::StringPiece(body.data(), body.size()), out, options);
    if (!status.ok()) {
      return std::unexpected(Malformed(*out, {status.message().data(), status.message().size()}));
    }
  } catch (const std::exception& error) {  // FatalException from inside the type resolver
    return std::unexpected(Malformed(*out, error.what()));
  }
  return {};
}

base::Result<std::string> SerializeMessage(WireFormat format,
                                           const google::protobuf::Message& message) {
  std::string body;
  bool ok = false;
  if (format == WireFormat::kProto) {
    ok = message.SerializeToString(&body);
  } else {
    json::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    try {
      ok = json::MessageToJsonString(message, &body, options).ok();
    } catch (const std::exception&) {
      ok = false;
    }
  }
  if (!ok) {
    return base::Fail(Code::kInternal, "message.unserializable",
                      fmt::format("{} cannot be written as {}",
                                  message.GetDescriptor()->full_name(), FormatName(format)));
  }
  return body;
}

Compression Negotiate(std::string_view accept_encoding) {
  Compression best = Compression::kIdentity;
  int best_quality = 0;
  for (std::string_view element : base::Split(accept_encoding, ',')) {
    const auto semicolon = element.find(';');
    const std::string_view name = base::Trim(element.substr(0, semicolon));
    if (name.empty()) continue;
    const auto compression = CompressionFromName(name);
    if (!compression) continue;
    const int quality =
        semicolon == std::string_view::npos ? 1000 : Quality(element.substr(semicolon + 1));
    if (quality > best_quality) {
      best = *compression;
      best_quality = quality;
    }
  }
  return best;
}

}  // namespace expanse::net
