// version, completions, man, help.
#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/completions.h"
#include "cli/help.h"
#include "cli/man.h"
#include "cli/parse.h"

namespace expanse::cli {
namespace {

constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
constexpr PositionalSpec kShell[] = {{.name = "SHELL", .help = "bash, zsh or fish"}};
constexpr ExampleSpec kCompletionExamples[] = {
    {"source <(expanse completions bash)", "for this bash"},
    {"expanse completions zsh > ~/.zfunc/_expanse", "for zsh, with ~/.zfunc in fpath"},
    {"expanse completions fish > ~/.config/fish/completions/expanse.fish", "for fish"},
};
constexpr OptionSpec kManOptions[] = {
    {.name = "directory",
     .kind = ValueKind::kPath,
     .value_name = "DIR",
     .help = "Write one page per command here instead of the first page to standard output"},
};
constexpr ExampleSpec kManExamples[] = {
    {"expanse man | man -l -", "read it"},
    {"expanse man --directory /usr/local/share/man/man1", "install all pages"},
};
constexpr PositionalSpec kHelpWords[] = {
    {.name = "COMMAND", .help = "Command to tell about", .required = false, .repeated = true}};
constexpr ExampleSpec kHelpExamples[] = {
    {"expanse help compute register", "the same as expanse compute register --help"}};
constexpr ExampleSpec kVersionExamples[] = {{"expanse version", "name and version"}};

CommandResult PrintVersion(App& app, const Arguments&) {
  app.terminal.Out(fmt::format("expanse {}\n", base::Version()));
  return 0;
}

CommandResult Completions(App& app, const Arguments& arguments) {
  const std::string& shell = arguments.positionals().front();
  const auto known = ParseShell(shell);
  if (!known) {
    return FailUsage(fmt::format("completions: no shell '{}'", base::EscapeForDisplay(shell)),
                     fmt::format("one of {}", fmt::join(kShells, ", ")));
  }
  app.terminal.Out(CompletionScript(*known, RootCommand()));
  return 0;
}

CommandResult Man(App& app, const Arguments& arguments) {
  const auto pages = ManPages(RootCommand(), base::Version());
  if (!arguments.Has("directory")) {
    app.terminal.Out(pages.front().text);
    return 0;
  }
  const std::string directory = arguments.Text("directory");
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(directory));
  for (const ManPage& page : pages) {
    auto written =
        base::WriteFileAtomically(base::JoinPath(directory, page.file_name), page.text, 0644);
    if (!written) return std::unexpected(std::move(written).error().With("man"));
  }
  Say(app, fmt::format("Wrote {} pages to {}.", pages.size(), directory));
  return 0;
}

CommandResult Help(App& app, const Arguments& arguments) {
  std::vector<std::string> words = arguments.positionals();
  words.emplace_back("--help");
  const auto invocation = Parse(RootCommand(), words, {});
  if (!invocation) return std::unexpected(invocation.error());
  app.terminal.Out(HelpText(invocation->path));
  return 0;
}

}  // namespace

constinit const CommandSpec kVersionCommand = {.name = "version",
                                               .summary = "Print the version",
                                               .description = "Prints the version of this program.",
                                               .examples = kVersionExamples,
                                               .run = PrintVersion};

constinit const CommandSpec kCompletionsCommand = {
    .name = "completions",
    .summary = "Print a completion script for a shell",
    .description = "Prints a script that completes commands, options and their values.",
    .positionals = kShell,
    .examples = kCompletionExamples,
    .run = Completions};

constinit const CommandSpec kManCommand = {
    .name = "man",
    .summary = "Print or write the manual pages",
    .description = "The manual pages are made from the same declarations as --help.",
    .options = kManOptions,
    .examples = kManExamples,
    .run = Man};

constinit const CommandSpec kHelpCommand = {.name = "help",
                                            .summary = "Tell about a command",
                                            .description = "Prints what --help prints.",
                                            .positionals = kHelpWords,
                                            .examples = kHelpExamples,
                                            .run = Help};

}  // namespace expanse::cli
