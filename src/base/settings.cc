#include "base/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/time.h"

extern char** environ;

namespace expanse::base {
namespace {

std::string_view KindName(SettingKind kind) {
  switch (kind) {
    case SettingKind::kString:
      return "text";
    case SettingKind::kInt:
      return "whole number";
    case SettingKind::kBool:
      return "true or false";
    case SettingKind::kDuration:
      return "duration";
    case SettingKind::kBytes:
      return "size";
    case SettingKind::kPath:
      return "path";
    case SettingKind::kList:
      return "comma-separated list";
  }
  return "text";
}

std::string Origin(const SettingSpec& spec, SettingSource source) {
  switch (source) {
    case SettingSource::kFlag:
      return FlagName(spec);
    case SettingSource::kEnvironment:
      return EnvironmentName(spec);
    case SettingSource::kFile:
      return fmt::format("\"{}\" in the configuration file", spec.name);
    case SettingSource::kDefault:
      return fmt::format("the default of {}", spec.name);
  }
  return spec.name;
}

// Flattens nested objects to dotted names; every leaf becomes text.
Status Flatten(const nlohmann::json& node, const std::string& prefix,
               std::map<std::string, std::string>& out) {
  for (const auto& [key, value] : node.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      EXPANSE_RETURN_IF_ERROR(Flatten(value, name, out));
    } else if (value.is_string()) {
      out[name] = value.get<std::string>();
    } else if (value.is_boolean() || value.is_number()) {
      out[name] = value.dump();
    } else if (value.is_array() && std::all_of(value.begin(), value.end(),
                                               [](const auto& e) { return e.is_string(); })) {
      std::string joined;
      for (const auto& element : value) {
        if (!joined.empty()) joined += ',';
        joined += element.template get<std::string>();
      }
      out[name] = joined;
    } else {
      return Fail(
          Code::kInvalidArgument, "settings.kind",
          fmt::format("\"{}\" in the configuration file has a value of an unusable kind", name));
    }
  }
  return {};
}

Result<std::map<std::string, std::string>> ParseFile(std::string_view file) {
  std::map<std::string, std::string> values;
  if (Trim(file).empty()) return values;
  const auto json =
      nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (!json.is_object()) {
    return Fail(Code::kInvalidArgument, "settings.syntax",
                "the configuration file is not a JSON object");
  }
  EXPANSE_RETURN_IF_ERROR(Flatten(json, "", values));
  return values;
}

// The number behind `text`, for the kinds that have one.
Result<std::int64_t> ParseNumber(SettingKind kind, std::string_view text) {
  switch (kind) {
    case SettingKind::kInt:
      if (auto number = ParseInt<std::int64_t>(Trim(text))) return *number;
      return Fail(Code::kInvalidArgument, "settings.kind", "not a whole number");
    case SettingKind::kBool: {
      const std::string lower = ToLower(Trim(text));
      if (lower == "true" || lower == "1" || lower == "yes" || lower == "on") return 1;
      if (lower == "false" || lower == "0" || lower == "no" || lower == "off") return 0;
      return Fail(Code::kInvalidArgument, "settings.kind", "neither true nor false");
    }
    case SettingKind::kDuration: {
      EXPANSE_ASSIGN_OR_RETURN(const auto duration, ParseDuration(text));
      return duration.count();
    }
    case SettingKind::kBytes: {
      EXPANSE_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(text));
      return static_cast<std::int64_t>(bytes.count);
    }
    case SettingKind::kString:
    case SettingKind::kPath:
    case SettingKind::kList:
      return 0;
  }
  return 0;
}

std::string Bounds(const SettingSpec& spec) {
  const auto show = [&](double bound) {
    if (spec.kind == SettingKind::kDuration)
      return FormatDuration(std::chrono::milliseconds(std::int64_t(bound * 1000)));
    if (spec.kind == SettingKind::kBytes) return FormatBytes(Bytes{std::uint64_t(bound)});
    return fmt::format("{}", std::int64_t(bound));
  };
  if (spec.min && spec.max) return fmt::format("{} to {}", show(*spec.min), show(*spec.max));
  if (spec.min) return fmt::format("at least {}", show(*spec.min));
  if (spec.max) return fmt::format("at most {}", show(*spec.max));
  return "";
}

}  // namespace

std::string FlagName(const SettingSpec& spec) {
  std::string flag = "--" + spec.name;
  std::replace(flag.begin(), flag.end(), '.', '-');
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string EnvironmentName(const SettingSpec& spec) {
  if (!spec.environment.empty()) return spec.environment;
  std::string name = "EXPANSE_" + spec.name;
  for (char& c : name) {
    if (c == '.') c = '_';
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

Result<Settings> Settings::Load(const std::vector<SettingSpec>& specs, std::string_view file,
                                const Environment& environment,
                                const std::map<std::string, std::string>& flags) {
  EXPANSE_ASSIGN_OR_RETURN(auto from_file, ParseFile(file));
  Settings settings;
  for (const SettingSpec& spec : specs) {
    Value value{spec.kind, spec.default_value, SettingSource::kDefault, 0};
    if (auto it = from_file.find(spec.name); it != from_file.end()) {
      value.text = it->second;
      value.source = SettingSource::kFile;
      from_file.erase(it);
    }
    if (auto it = environment.find(EnvironmentName(spec));
        it != environment.end() && !it->second.empty()) {
      value.text = it->second;
      value.source = SettingSource::kEnvironment;
    }
    if (auto it = flags.find(spec.name); it != flags.end()) {
      if (spec.secret) {
        // The arguments of a program are there for everybody on the host to see.
        return Fail(
            Code::kInvalidArgument, "settings.secret",
            fmt::format(
                "{} is a secret and is not taken from a flag; use {} or the configuration file",
                spec.name, EnvironmentName(spec)));
      }
      value.text = it->second;
      value.source = SettingSource::kFlag;
    }
    const bool has_number = spec.kind != SettingKind::kString && spec.kind != SettingKind::kPath &&
                            spec.kind != SettingKind::kList;
    if (has_number) {
      auto number = ParseNumber(spec.kind, value.text);
      if (!number) {
        // The parser's message may quote the value.
        return Fail(
            Code::kInvalidArgument, "settings.kind",
            spec.secret
                ? fmt::format("{}: not a {}", Origin(spec, value.source), KindName(spec.kind))
                : fmt::format("{}: \"{}\" is not a {}: {}", Origin(spec, value.source),
                              EscapeForDisplay(value.text), KindName(spec.kind),
                              number.error().message));
      }
      value.number = *number;
      const double scaled =
          spec.kind == SettingKind::kDuration ? double(*number) / 1000 : double(*number);
      if ((spec.min && scaled < *spec.min) || (spec.max && scaled > *spec.max)) {
        return Fail(
            Code::kInvalidArgument, "settings.range",
            fmt::format("{}: {} is out of bounds; use {}", Origin(spec, value.source),
                        spec.secret ? "the value" : EscapeForDisplay(value.text), Bounds(spec)));
      }
    }
    settings.values_.emplace(spec.name, std::move(value));
  }
  if (!from_file.empty()) {
    std::vector<std::string> names;
    for (const SettingSpec& spec : specs) names.push_back(spec.name);
    const std::string& unknown = from_file.begin()->first;
    const auto nearest = NearestWord(unknown, names);
    return Fail(Code::kInvalidArgument, "settings.unknown",
                fmt::format("\"{}\" in the configuration file is not a setting{}",
                            EscapeForDisplay(unknown),
                            nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : ""));
  }
  return settings;
}

const Settings::Value& Settings::Get(std::string_view name, SettingKind kind) const {
  const auto it = values_.find(name);
  EXPANSE_CHECK(it != values_.end());
  EXPANSE_CHECK(it->second.kind == kind);
  return it->second;
}

const std::string& Settings::GetString(std::string_view name) const {
  const auto it = values_.find(name);
  EXPANSE_CHECK(it != values_.end());
  EXPANSE_CHECK(it->second.kind == SettingKind::kString || it->second.kind == SettingKind::kPath);
  return it->second.text;
}
std::int64_t Settings::GetInt(std::string_view name) const {
  return Get(name, SettingKind::kInt).number;
}
bool Settings::GetBool(std::string_view name) const {
  return Get(name, SettingKind::kBool).number != 0;
}
std::chrono::milliseconds Settings::GetDuration(std::string_view name) const {
  return std::chrono::milliseconds(Get(name, SettingKind::kDuration).number);
}
Bytes Settings::GetBytes(std::string_view name) const {
  return Bytes{static_cast<std::uint64_t>(Get(name, SettingKind::kBytes).number)};
}
std::vector<std::string> Settings::GetList(std::string_view name) const {
  std::vector<std::string> items;
  for (std::string_view item : Split(Get(name, SettingKind::kList).text, ',')) {
    if (!Trim(item).empty()) items.emplace_back(Trim(item));
  }
  return items;
}
const std::string& Settings::TextOf(std::string_view name) const {
  const auto it = values_.find(name);
  EXPANSE_CHECK(it != values_.end());
  return it->second.text;
}
SettingSource Settings::SourceOf(std::string_view name) const {
  const auto it = values_.find(name);
  EXPANSE_CHECK(it != values_.end());
  return it->second.source;
}

Settings::Environment ProcessEnvironment() {
  Settings::Environment variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::string SettingsMarkdown(const std::vector<SettingSpec>& specs) {
  std::string text =
      "| Setting | Flag | Environment | Default | Meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const SettingSpec& spec : specs) {
    const std::string bounds = Bounds(spec);
    text +=
        fmt::format("| `{}` | {} | `{}` | {} | {}{} |\n", spec.name,
                    spec.secret ? "" : fmt::format("`{}`", FlagName(spec)), EnvironmentName(spec),
                    spec.default_value.empty() ? "" : fmt::format("`{}`", spec.default_value),
                    spec.help, bounds.empty() ? "" : fmt::format(" ({})", bounds));
  }
  return text;
}

std::string SettingsHelp(const std::vector<SettingSpec>& specs) {
  std::string text;
  for (const SettingSpec& spec : specs) {
    if (spec.secret) continue;
    text += fmt::format("  {:<34} {}{}\n", FlagName(spec) + " " + ToLower(KindName(spec.kind)),
                        spec.help,
                        spec.default_value.empty() ? "" : fmt::format(" [{}]", spec.default_value));
  }
  return text;
}

}  // namespace expanse::base
