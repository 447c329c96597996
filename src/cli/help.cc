#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/parse.h"

namespace expanse::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kMostLabel = 26;  // a longer label gets a line of its own

constexpr ExitCodeSpec kExitCodes[] = {
    {0, "ok"},
    {1, "failure"},
    {2, "mistake on the command line"},
    {3, "not found"},
    {4, "not signed in, or not allowed"},
    {5, "server unreachable or too slow"},
    {6, "conflict with what is there"},
    {130, "interrupted"},
};

struct Row {
  std::string label;
  std::string text;
};

// Labels left, text right and wrapped.
std::string Rows(const std::vector<Row>& rows) {
  std::size_t widest = 0;
  for (const Row& row : rows) {
    if (row.label.size() <= kMostLabel) widest = std::max(widest, row.label.size());
  }
  std::string out;
  const std::size_t indent = widest + 4;
  for (const Row& row : rows) {
    std::string text = Wrap(row.text, kWidth, indent);
    if (row.label.size() <= widest) {
      text.replace(0, row.label.size() + 2, "  " + row.label);
      out += text;
    } else {
      out += "  " + row.label + "\n" + text;
    }
  }
  return out;
}

std::vector<Row> OptionRows(const CommandSpec& command, bool is_root) {
  std::vector<Row> rows;
  for (const OptionSpec& option : command.options)
    rows.push_back({OptionForm(option), OptionHelp(option)});
  for (const OptionSpec& option : CommonOptions())
    rows.push_back({OptionForm(option), OptionHelp(option)});
  if (is_root) rows.push_back({"--version", "Print the version and leave"});
  return rows;
}

std::string ExampleText(const CommandSpec& command, std::string_view indent) {
  std::string out;
  for (const ExampleSpec& example : command.examples) {
    out += fmt::format("{}# {}\n{}{}\n", indent, example.what, indent, example.command);
  }
  return out;
}

std::string TableCell(std::string_view text) {
  std::string cell;
  for (char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

void AppendMarkdown(std::vector<const CommandSpec*> path, std::string* out) {
  const CommandSpec& command = *path.back();
  *out += fmt::format("{} `{}`\n\n{}.\n\n", path.size() > 2 ? "###" : "##", PathName(path),
                      command.summary);
  *out += fmt::format("    {}\n\n{}\n\n", UsageLine(path), command.description);
  if (!command.positionals.empty()) {
    *out += "| Argument | What it is |\n| --- | --- |\n";
    for (const PositionalSpec& positional : command.positionals) {
      *out += fmt::format("| `{}` | {} |\n", positional.name, TableCell(positional.help));
    }
    *out += '\n';
  }
  if (!command.options.empty()) {
    *out += "| Flag | What it does |\n| --- | --- |\n";
    for (const OptionSpec& option : command.options) {
      *out += fmt::format("| `{}` | {} |\n", OptionForm(option), TableCell(OptionHelp(option)));
    }
    *out += '\n';
  }
  if (!command.environment.empty()) {
    *out += "| Variable | What it does |\n| --- | --- |\n";
    for (const EnvironmentSpec& variable : command.environment) {
      *out += fmt::format("| `{}` | {} |\n", variable.name, TableCell(variable.help));
    }
    *out += '\n';
  }
  if (!command.examples.empty()) *out += "```sh\n" + ExampleText(command, "") + "```\n\n";
  for (const CommandSpec* child : command.children) {
    path.push_back(child);
    AppendMarkdown(path, out);
    path.pop_back();
  }
}

}  // namespace

std::span<const ExitCodeSpec> ExitCodes() { return kExitCodes; }

std::string OptionForm(const OptionSpec& option) {
  if (option.kind == ValueKind::kFlag) return fmt::format("--{}", option.name);
  return fmt::format("--{} {}", option.name, option.value_name);
}

std::string OptionHelp(const OptionSpec& option) {
  std::string text(option.help);
  if (option.repeatable) text += "; may be repeated";
  if (!option.choices.empty()) text += fmt::format(" ({})", fmt::join(option.choices, ", "));
  if (!option.default_text.empty()) text += fmt::format(" [default: {}]", option.default_text);
  if (!option.environment.empty()) text += fmt::format(" [env: {}]", option.environment);
  return text;
}

std::string Wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  const std::string margin(indent, ' ');
  for (std::string_view paragraph : base::Split(text, '\n')) {
    std::string line = margin;
    bool empty = true;
    for (std::string_view word : base::SplitSpaces(paragraph)) {
      const std::size_t columns = base::DisplayWidth(line) + base::DisplayWidth(word);
      if (!empty && columns + 1 > width) {
        out += line + '\n';
        line = margin;
        empty = true;
      }
      if (!empty) line += ' ';
      line += word;
      empty = false;
    }
    out += empty ? "\n" : line + '\n';
  }
  return out;
}

std::string UsageLine(const std::vector<const CommandSpec*>& path) {
  const CommandSpec& command = *path.back();
  std::string usage = PathName(path);
  if (command.run == nullptr) return usage + " COMMAND";
  usage += " [OPTIONS]";
  if (command.stop_at_positional) usage += " [--]";
  for (const PositionalSpec& positional : command.positionals) {
    const std::string form = std::string(positional.name) + (positional.repeated ? "…" : "");
    usage += positional.required ? " " + form : " [" + form + "]";
  }
  return usage;
}

std::string HelpText(const std::vector<const CommandSpec*>& path) {
  const CommandSpec& command = *path.back();
  std::string out = "Usage: " + UsageLine(path) + "\n\n" + Wrap(command.description, kWidth, 0);
  if (!command.children.empty()) {
    std::vector<Row> rows;
    for (const CommandSpec* child : command.children) {
      rows.push_back({std::string(child->name), std::string(child->summary)});
    }
    out += "\nCommands:\n" + Rows(rows);
  }
  if (!command.positionals.empty()) {
    std::vector<Row> rows;
    for (const PositionalSpec& positional : command.positionals) {
      rows.push_back({std::string(positional.name), std::string(positional.help)});
    }
    out += "\nArguments:\n" + Rows(rows);
  }
  out += "\nOptions:\n" + Rows(OptionRows(command, path.size() == 1));
  if (!command.environment.empty()) {
    std::vector<Row> rows;
    for (const EnvironmentSpec& variable : command.environment) {
      rows.push_back({std::string(variable.name), std::string(variable.help)});
    }
    out += "\nEnvironment:\n" + Rows(rows);
  }
  if (!command.examples.empty()) out += "\nExamples:\n" + ExampleText(command, "  ");
  if (path.size() == 1) {
    std::vector<Row> rows;
    for (const ExitCodeSpec& exit : kExitCodes) {
      rows.push_back({std::to_string(exit.code), std::string(exit.meaning)});
    }
    out += "\nExit codes:\n" + Rows(rows);
    out += "\n`expanse COMMAND --help` tells more about a command.\n";
  }
  return out;
}

std::string ReferenceMarkdown(const CommandSpec& root) {
  std::string out = "# The `expanse` command\n\n";
  out +=
      "<!-- Made from the declarations in src/cli; `EXPANSE_UPDATE_GOLDEN=1 cli_test` writes it "
      "anew. -->\n\n";
  out += fmt::format("{}\n\n", root.description);
  out += "| Exit code | Meaning |\n| --- | --- |\n";
  for (const ExitCodeSpec& exit : kExitCodes)
    out += fmt::format("| {} | {} |\n", exit.code, exit.meaning);
  out += "\n| Variable | What it does |\n| --- | --- |\n";
  for (const EnvironmentSpec& variable : root.environment) {
    out += fmt::format("| `{}` | {} |\n", variable.name, TableCell(variable.help));
  }
  out += '\n';
  for (const CommandSpec* child : root.children) AppendMarkdown({&root, child}, &out);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace expanse::cli
