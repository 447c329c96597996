// Settings: each option is declared once (name, kind, default, bounds, help); flags, environment
// names, the file's keys, --help, man pages and docs all come from that declaration.
// Precedence: flag > environment > file > default.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace expanse::base {

enum class SettingKind : std::uint8_t { kString, kInt, kBool, kDuration, kBytes, kPath, kList };

// `name` is dotted lower-case words with underscores: "ingest.max_body". From it come
//   flag         --ingest-max-body VALUE
//   environment  EXPANSE_INGEST_MAX_BODY
//   file (JSON)  {"ingest": {"max_body": "16MiB"}}
struct SettingSpec {
  std::string name;
  SettingKind kind = SettingKind::kString;
  std::string default_value;
  std::string help;
  std::optional<double> min;  // kInt: value, kDuration: seconds, kBytes: bytes
  std::optional<double> max;
  bool secret = false;      // never printed; not accepted as a flag
  std::string environment;  // overrides the derived name where the reference docs fix one
};

std::string FlagName(const SettingSpec& spec);
std::string EnvironmentName(const SettingSpec& spec);

// Where a value came from; for `--print-config` and error messages.
enum class SettingSource : std::uint8_t { kDefault, kFile, kEnvironment, kFlag };

// An immutable set of checked values. Getters abort on a name or kind that was not declared: that
// is a bug of ours, not of the user.
class Settings {
 public:
  using Environment = std::map<std::string, std::string>;

  // `file` is a JSON object or empty; `flags` maps setting names to values. Unknown file keys,
  // wrong kinds and values out of bounds fail with settings.unknown, settings.kind, settings.range,
  // naming the setting and where the value came from; a secret given as a flag with
  // settings.secret.
  static Result<Settings> Load(const std::vector<SettingSpec>& specs, std::string_view file,
                               const Environment& environment,
                               const std::map<std::string, std::string>& flags);

  const std::string& GetString(std::string_view name) const;  // kString and kPath
  std::int64_t GetInt(std::string_view name) const;
  bool GetBool(std::string_view name) const;
  std::chrono::milliseconds GetDuration(std::string_view name) const;
  Bytes GetBytes(std::string_view name) const;
  std::vector<std::string> GetList(std::string_view name) const;  // comma-separated
  // The value of any kind as it was written, for --print-config.
  const std::string& TextOf(std::string_view name) const;
  SettingSource SourceOf(std::string_view name) const;

 private:
  struct Value {
    SettingKind kind = SettingKind::kString;
    std::string text;
    SettingSource source = SettingSource::kDefault;
    std::int64_t number = 0;  // int, bool, milliseconds or bytes
  };
  const Value& Get(std::string_view name, SettingKind kind) const;
  std::map<std::string, Value, std::less<>> values_;
};

// The process's environment as a map.
Settings::Environment ProcessEnvironment();

// A Markdown table of all settings, for docs/.
std::string SettingsMarkdown(const std::vector<SettingSpec>& specs);
// Aligned text for --help.
std::string SettingsHelp(const std::vector<SettingSpec>& specs);

}  // namespace expanse::base
