// Text about commands, made from their declarations: --help and the reference page docs/cli.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/spec.h"

namespace expanse::cli {

// What `--help` prints for the last command of `path`, at most 80 columns wide.
std::string HelpText(const std::vector<const CommandSpec*>& path);
// "expanse metrics [OPTIONS] EXECUTION_ID METRIC…".
std::string UsageLine(const std::vector<const CommandSpec*>& path);
// The whole reference as Markdown.
std::string ReferenceMarkdown(const CommandSpec& root);

// "--api-key KEY", "--json".
std::string OptionForm(const OptionSpec& option);
// The help of an option with its choices, default and variable.
std::string OptionHelp(const OptionSpec& option);
// Paragraphs filled to `width` columns, each line behind `indent` spaces.
std::string Wrap(std::string_view text, std::size_t width, std::size_t indent);

struct ExitCodeSpec {
  int code;
  std::string_view meaning;
};
std::span<const ExitCodeSpec> ExitCodes();

}  // namespace expanse::cli
