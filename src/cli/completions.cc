#include "cli/completions.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "cli/parse.h"

namespace expanse::cli {
namespace {

using Path = std::vector<const CommandSpec*>;

// Calls `visit` for every command, parents first.
void Walk(const Path& path, const std::function<void(const Path&)>& visit) {
  visit(path);
  for (const CommandSpec* child : path.back()->children) {
    Path deeper = path;
    deeper.push_back(child);
    Walk(deeper, visit);
  }
}

std::string Words(const CommandSpec& command, bool is_root) {
  std::vector<std::string> words;
  for (const CommandSpec* child : command.children) words.emplace_back(child->name);
  for (const OptionSpec& option : command.options)
    words.push_back(fmt::format("--{}", option.name));
  for (const OptionSpec& option : CommonOptions())
    words.push_back(fmt::format("--{}", option.name));
  if (is_root) words.emplace_back("--version");
  return fmt::format("{}", fmt::join(words, " "));
}

// Within single quotes of sh and fish.
std::string SingleQuoted(std::string_view text) {
  std::string quoted;
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted;
}

std::string BashScript(const CommandSpec& root) {
  std::string commands;  // the path so far and a word -> the next path
  std::string words;     // a path -> what can follow
  std::string values;    // a path and an option -> its values
  std::string passes;    // commands behind which another program's arguments follow
  Walk({&root}, [&](const Path& path) {
    const CommandSpec& command = *path.back();
    const std::string name = PathName(path);
    words += fmt::format("    '{}') words='{}' ;;\n", name, Words(command, path.size() == 1));
    for (const CommandSpec* child : command.children) {
      const std::string alias =
          child->alias.empty() ? "" : fmt::format(" | '{} {}'", name, child->alias);
      commands += fmt::format("      '{0} {1}'{2}) path='{0} {1}' ;;\n", name, child->name, alias);
    }
    if (command.stop_at_positional) passes += fmt::format("      '{}') passes=1 ;;\n", name);
    for (const OptionSpec& option : command.options) {
      if (option.kind == ValueKind::kFlag) continue;
      if (!option.choices.empty()) {
        values += fmt::format(
            "    '{} --{}') COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n", name,
            option.name, fmt::join(option.choices, " "));
      } else if (option.kind == ValueKind::kPath) {
        values +=
            fmt::format("    '{} --{}') COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n",
                        name, option.name);
      } else {
        values += fmt::format("    '{} --{}') return ;;\n", name, option.name);
      }
    }
  });
  return fmt::format(R"(# bash completion for {0}; made by `{0} completions bash`.
_{0}() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local path='{0}' words='' passes='' word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${{COMP_WORDS[i]}}"
    case "$path" in
{4}    esac
    if [ -n "$passes" ] && [ "$word" = -- ]; then
      COMPREPLY=($(compgen -c -f -- "$current")); return
    fi
    case "$path $word" in
{1}    esac
  done
  case "$path $previous" in
{3}  esac
  case "$path" in
{2}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _{0} {0}
)",
                     root.name, commands, words, values, passes);
}

std::string ZshEscaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return escaped;
}

std::string ZshOption(const OptionSpec& option) {
  std::string line = fmt::format("{}'--{}[{}]", option.repeatable ? "'*'" : "", option.name,
                                 ZshEscaped(option.help));
  if (option.kind != ValueKind::kFlag) {
    line += fmt::format(":{}:", ZshEscaped(option.value_name));
    if (!option.choices.empty()) line += fmt::format("({})", fmt::join(option.choices, " "));
    if (option.kind == ValueKind::kPath) line += "_files";
  }
  return line + "'";
}

std::string Identifier(const Path& path) {
  std::string name;
  for (const CommandSpec* command : path) name += fmt::format("_{}", command->name);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

void AppendZshFunction(const Path& path, std::string* out) {
  const CommandSpec& command = *path.back();
  *out += fmt::format("{}() {{\n", Identifier(path));
  std::string options;
  for (const OptionSpec& option : command.options)
    options += fmt::format(" \\\n    {}", ZshOption(option));
  options += " \\\n    '(-h --help)'{-h,--help}'[Show help]'";
  if (command.children.empty()) {
    const std::string rest = command.stop_at_positional ? " \\\n    '*::command:_normal'"
                                                        : " \\\n    '*:argument:_files'";
    *out += fmt::format("  _arguments{}{}\n}}\n\n", options, rest);
    return;
  }
  *out += "  local state line\n  local -a commands\n";
  *out += fmt::format("  _arguments -C{} \\\n    '1: :->command' '*:: :->rest'\n", options);
  *out += "  case $state in\n    command)\n      commands=(\n";
  for (const CommandSpec* child : command.children) {
    *out += fmt::format("        '{}:{}'\n", child->name, ZshEscaped(child->summary));
  }
  const bool takes_files = !command.positionals.empty() && command.positionals.front().is_file;
  *out += fmt::format("      )\n      _describe command commands{} ;;\n",
                      takes_files ? "\n      _files" : "");
  *out += "    rest)\n      case $line[1] in\n";
  for (const CommandSpec* child : command.children) {
    Path deeper = path;
    deeper.push_back(child);
    const std::string alias = child->alias.empty() ? "" : fmt::format(" | {}", child->alias);
    *out += fmt::format("        {}{}) {} ;;\n", child->name, alias, Identifier(deeper));
  }
  if (takes_files) *out += "        *) _files ;;\n";
  *out += "      esac ;;\n  esac\n}\n\n";
}

std::string ZshScript(const CommandSpec& root) {
  std::string out = fmt::format(
      "#compdef {0}\n# zsh completion for {0}; made by `{0} completions zsh`.\n\n", root.name);
  Walk({&root}, [&](const Path& path) { AppendZshFunction(path, &out); });
  out += fmt::format(
      "if [ \"$funcstack[1]\" = _{0} ]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n", root.name);
  return out;
}

// True (0) when the words so far name exactly this command.
std::string FishCondition(const Path& path) {
  std::string condition;
  for (std::size_t i = 1; i < path.size(); ++i) {
    condition +=
        fmt::format("{}__fish_seen_subcommand_from {}{}{}", condition.empty() ? "" : "; and ",
                    path[i]->name, path[i]->alias.empty() ? "" : " ", path[i]->alias);
  }
  std::vector<std::string_view> below;
  for (const CommandSpec* child : path.back()->children) below.push_back(child->name);
  if (path.size() == 1) return "__fish_use_subcommand";
  if (!below.empty())
    condition += fmt::format("; and not __fish_seen_subcommand_from {}", fmt::join(below, " "));
  return condition;
}

std::string FishScript(const CommandSpec& root) {
  std::string out =
      fmt::format("# fish completion for {0}; made by `{0} completions fish`.\n", root.name);
  out += fmt::format("complete -c {} -f\n", root.name);
  Walk({&root}, [&](const Path& path) {
    const CommandSpec& command = *path.back();
    const std::string prefix =
        fmt::format("complete -c {} -n '{}'", root.name, FishCondition(path));
    for (const CommandSpec* child : command.children) {
      out += fmt::format("{} -a {} -d '{}'\n", prefix, child->name, SingleQuoted(child->summary));
    }
    for (const OptionSpec& option : command.options) {
      out += fmt::format("{} -l {} -d '{}'", prefix, option.name, SingleQuoted(option.help));
      if (option.kind != ValueKind::kFlag)
        out += option.kind == ValueKind::kPath ? " -r -F" : " -x";
      if (!option.choices.empty()) out += fmt::format(" -a '{}'", fmt::join(option.choices, " "));
      out += '\n';
    }
    if (!command.positionals.empty() && command.positionals.front().is_file) {
      out += fmt::format("{} -F\n", prefix);
    }
    if (command.stop_at_positional) {
      out += fmt::format("{} -a '(__fish_complete_subcommand --fcs-skip=2)'\n", prefix);
    }
  });
  out += fmt::format("complete -c {} -s h -l help -d 'Show help'\n", root.name);
  return out;
}

}  // namespace

std::optional<Shell> ParseShell(std::string_view name) {
  if (name == "bash") return Shell::kBash;
  if (name == "zsh") return Shell::kZsh;
  if (name == "fish") return Shell::kFish;
  return std::nullopt;
}

std::string CompletionScript(Shell shell, const CommandSpec& root) {
  switch (shell) {
    case Shell::kBash:
      return BashScript(root);
    case Shell::kZsh:
      return ZshScript(root);
    case Shell::kFish:
      return FishScript(root);
  }
  return {};
}

}  // namespace expanse::cli
