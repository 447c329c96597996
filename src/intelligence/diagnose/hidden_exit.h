// Whether a job script ends well although a command of it failed. Pure; linear in the script.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace expanse::intelligence::diagnose {

enum class Hiding : std::uint8_t {
  kOrTrue,       // command || true
  kSetPlusE,     // set -e, switched off again before the command
  kPipe,         // command | tee log, without pipefail
  kLastCommand,  // the script's status is that of an echo, exit 0 or the like behind it
};
std::string_view Name(Hiding hiding);  // "or_true", "set_plus_e", "pipe", "last_command"

struct HiddenExit {
  Hiding how = Hiding::kOrTrue;
  std::uint32_t line = 0;  // from 1
  std::string text;        // that line, byte for byte
  bool operator==(const HiddenExit&) const = default;
};

// The likeliest of them, where the script has any. Commands that only keep house (rm, mkdir,
// module, grep …) hide nothing that matters. Absent for what is no script of a POSIX shell by its
// first line, and where the last command cannot be told (the script ends in a loop, a branch or a
// function).
std::optional<HiddenExit> FindHiddenExit(std::string_view script);

}  // namespace expanse::intelligence::diagnose
