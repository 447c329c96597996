#include "base/flags.h"

#include <fmt/format.h>

#include "base/text.h"

namespace expanse::base {
namespace {

const SettingSpec* Find(const std::vector<SettingSpec>& specs, std::string_view flag) {
  for (const SettingSpec& spec : specs) {
    if (FlagName(spec) == flag) return &spec;
  }
  return nullptr;
}

Error Unknown(const std::vector<SettingSpec>& specs, std::string_view flag) {
  std::vector<std::string> names = {"--config", "--help", "--version"};
  for (const SettingSpec& spec : specs) names.push_back(FlagName(spec));
  const auto nearest = NearestWord(flag, names);
  return Error{Code::kInvalidArgument, "flags.unknown",
               fmt::format("unknown flag {}{}", EscapeForDisplay(flag),
                           nearest ? fmt::format("; did you mean {}?", *nearest) : "")};
}

}  // namespace

Result<Flags> ParseFlags(const std::vector<SettingSpec>& specs,
                         const std::vector<std::string>& arguments) {
  Flags flags;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-h" || argument == "--help") {
      flags.help = true;
      continue;
    }
    if (argument == "--version") {
      flags.version = true;
      continue;
    }
    if (!argument.starts_with("-") || argument == "-") {
      flags.words.push_back(argument);
      continue;
    }
    const auto equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const SettingSpec* spec = Find(specs, name);
    if (spec == nullptr && name != "--config") return std::unexpected(Unknown(specs, name));
    if (spec != nullptr && spec->secret) {
      return Fail(Code::kInvalidArgument, "flags.secret",
                  fmt::format("{} is a secret: give it in {} or in the configuration file", name,
                              EnvironmentName(*spec)));
    }
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (spec != nullptr && spec->kind == SettingKind::kBool &&
               (i + 1 == arguments.size() || arguments[i + 1].starts_with("-"))) {
      value = "true";
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return Fail(Code::kInvalidArgument, "flags.value", fmt::format("{} needs a value", name));
    }
    if (spec == nullptr) {
      flags.config_file = value;
    } else {
      flags.settings[spec->name] = value;
    }
  }
  return flags;
}

}  // namespace expanse::base
