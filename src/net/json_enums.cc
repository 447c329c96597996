#include "net/json_enums.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace expanse::net {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

base::Status CheckMessage(const json& value, const Descriptor& type, const std::string& path);

base::Status CheckValue(const json& value, const FieldDescriptor& field, const std::string& path) {
  if (field.type() == FieldDescriptor::TYPE_ENUM && value.is_string()) {
    const auto& name = value.get_ref<const std::string&>();
    if (field.enum_type()->FindValueByName(name) == nullptr) {
      return base::Fail(base::Code::kInvalidArgument, "message.malformed",
                        fmt::format("{}: \"{}\" is not a value of {}", path,
                                    base::EscapeForDisplay(name), field.enum_type()->full_name()));
    }
    return {};
  }
  if (field.type() == FieldDescriptor::TYPE_MESSAGE)
    return CheckMessage(value, *field.message_type(), path);
  return {};
}

base::Status CheckField(const json& value, const FieldDescriptor& field, const std::string& path) {
  if (field.is_map()) {
    if (!value.is_object()) return {};
    for (const auto& [key, item] : value.items()) {
      EXPANSE_RETURN_IF_ERROR(
          CheckValue(item, *field.message_type()->map_value(), path + "." + key));
    }
    return {};
  }
  if (!field.is_repeated()) return CheckValue(value, field, path);
  if (!value.is_array()) return {};
  for (std::size_t i = 0; i < value.size(); ++i) {
    EXPANSE_RETURN_IF_ERROR(CheckValue(value[i], field, fmt::format("{}[{}]", path, i)));
  }
  return {};
}

base::Status CheckMessage(const json& value, const Descriptor& type, const std::string& path) {
  if (!value.is_object()) return {};
  for (const auto& [key, item] : value.items()) {
    const FieldDescriptor* field = type.FindFieldByName(key);
    if (field == nullptr) field = type.FindFieldByCamelcaseName(key);
    if (field == nullptr) continue;
    EXPANSE_RETURN_IF_ERROR(CheckField(item, *field, path.empty() ? key : path + "." + key));
  }
  return {};
}

}  // namespace

base::Status CheckEnumNames(std::string_view json_text, const Descriptor& type) {
  const json value = json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  return CheckMessage(value, type, "");
}

}  // namespace expanse::net
