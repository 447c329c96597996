#include "cli/man.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/parse.h"

namespace expanse::cli {
namespace {

using Path = std::vector<const CommandSpec*>;

// roff reads backslashes, and dots or quotes at the start of a line, as its own.
std::string Roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string PageName(const Path& path) {
  std::string name = PathName(path);
  for (char& c : name) c = c == ' ' ? '-' : c;
  return name;
}

std::string Entry(std::string_view label, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}\n", Roff(label), Roff(text));
}

std::string Paragraphs(std::string_view text) {
  std::string out;
  for (std::string_view paragraph : base::Split(text, '\n')) {
    out += paragraph.empty() ? ".PP\n" : Roff(paragraph) + "\n";
  }
  return out;
}

std::string PageText(const Path& path, std::string_view version) {
  const CommandSpec& command = *path.back();
  const std::string name = PageName(path);
  std::string upper = name;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::string out = fmt::format(".TH {} 1 \"\" \"expanse {}\" \"Expanse\"\n", Roff(upper), version);
  out += fmt::format(".SH NAME\n{} \\- {}\n", Roff(name), Roff(command.summary));
  out += fmt::format(".SH SYNOPSIS\n{}\n", Roff(UsageLine(path)));
  out += ".SH DESCRIPTION\n" + Paragraphs(command.description);
  if (!command.children.empty()) {
    out += ".SH COMMANDS\n";
    for (const CommandSpec* child : command.children) out += Entry(child->name, child->summary);
  }
  if (!command.positionals.empty()) {
    out += ".SH ARGUMENTS\n";
    for (const PositionalSpec& positional : command.positionals)
      out += Entry(positional.name, positional.help);
  }
  out += ".SH OPTIONS\n";
  for (const OptionSpec& option : command.options)
    out += Entry(OptionForm(option), OptionHelp(option));
  for (const OptionSpec& option : CommonOptions())
    out += Entry(OptionForm(option), OptionHelp(option));
  if (!command.environment.empty()) {
    out += ".SH ENVIRONMENT\n";
    for (const EnvironmentSpec& variable : command.environment)
      out += Entry(variable.name, variable.help);
  }
  if (!command.examples.empty()) {
    out += ".SH EXAMPLES\n";
    for (const ExampleSpec& example : command.examples) {
      out += fmt::format(".TP\n{}\n.B {}\n", Roff(example.what), Roff(example.command));
    }
  }
  out += ".SH EXIT STATUS\n";
  for (const ExitCodeSpec& exit : ExitCodes())
    out += Entry(std::to_string(exit.code), exit.meaning);
  if (path.size() > 1) {
    Path parent = path;
    parent.pop_back();
    out += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", Roff(PageName(parent)));
  }
  return out;
}

void Append(const Path& path, std::string_view version, std::vector<ManPage>* pages) {
  pages->push_back({PageName(path) + ".1", PageText(path, version)});
  for (const CommandSpec* child : path.back()->children) {
    Path deeper = path;
    deeper.push_back(child);
    Append(deeper, version, pages);
  }
}

}  // namespace

std::vector<ManPage> ManPages(const CommandSpec& root, std::string_view version) {
  std::vector<ManPage> pages;
  Append({&root}, version, &pages);
  return pages;
}

}  // namespace expanse::cli
