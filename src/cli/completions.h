// Shell completion scripts made from the command tree. Static text: completing starts no process,
// so it is instant and works signed out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/spec.h"

namespace expanse::cli {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };

std::optional<Shell> ParseShell(std::string_view name);
std::string CompletionScript(Shell shell, const CommandSpec& root);

}  // namespace expanse::cli
