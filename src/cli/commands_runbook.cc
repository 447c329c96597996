// runbook list, show and test: what classes of failure there are, and checks of a site's own.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/planes.h"
#include "cli/render.h"
#include "cli/runbook_check.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"

namespace expanse::cli {
namespace {

namespace v1 = intelligence::v1;
namespace diagnose = intelligence::diagnose;

constexpr std::size_t kLargestRunbooks = std::size_t{1} << 20;
constexpr std::size_t kLongestId = 64;
constexpr std::size_t kLargestCases = std::size_t{64} << 20;

constexpr OptionSpec kLocal = {.name = "local",
                               .kind = ValueKind::kFlag,
                               .help = "Those of this program, without asking the server"};
constexpr OptionSpec kListOptions[] = {
    kLocal, {.name = "json", .kind = ValueKind::kFlag, .help = "Print the API's JSON"}};
constexpr ExampleSpec kListExamples[] = {
    {"expanse runbook list", "the classes of failure that diagnose knows"},
    {"expanse runbook list | grep infrastructure", "those that the site has to mend"},
};
constexpr PositionalSpec kClass[] = {
    {.name = "CLASS", .help = "Failure class, as `expanse runbook list` shows it"}};
constexpr ExampleSpec kShowExamples[] = {
    {"expanse runbook show host_out_of_memory", "its signatures, texts and samples"},
    {"expanse runbook show port_in_use > site/port.yaml", "a beginning for one's own"},
};
constexpr PositionalSpec kPaths[] = {{.name = "PATH",
                                      .help = "File of runbooks, or directory with *.yaml",
                                      .required = false,
                                      .repeated = true,
                                      .is_file = true}};
constexpr OptionSpec kTestOptions[] = {
    {.name = "case",
     .kind = ValueKind::kPath,
     .value_name = "FILE",
     .help = "Cases to diagnose with them, JSON; each may name the class it should get",
     .repeatable = true},
    {.name = "log",
     .kind = ValueKind::kPath,
     .value_name = "FILE",
     .help = "Output of a failed run to diagnose with them",
     .repeatable = true},
};
constexpr ExampleSpec kTestExamples[] = {
    {"expanse runbook test /etc/expanse/runbooks", "before the server reads them"},
    {"expanse runbook test licence.yaml --log job-41982.err", "what they make of a log"},
    {"expanse runbook test licence.yaml --case cases.json", "and of cases with a known class"},
};

v1::RunbookSummary SummaryOf(const diagnose::Runbook& runbook) {
  v1::RunbookSummary summary;
  summary.set_id(runbook.id);
  summary.set_family(runbook.family);
  summary.set_kind(std::string(diagnose::Name(runbook.kind)));
  summary.set_owner(std::string(diagnose::Name(runbook.owner)));
  summary.set_title(runbook.title);
  summary.set_origin("embedded");
  return summary;
}

v1::ListRunbooksResponse LocalList() {
  v1::ListRunbooksResponse response;
  for (const diagnose::Runbook& runbook : diagnose::RunbookSet::Embedded())
    *response.add_runbooks() = SummaryOf(runbook);
  std::sort(response.mutable_runbooks()->begin(), response.mutable_runbooks()->end(),
            [](const auto& a, const auto& b) { return a.id() < b.id(); });
  return response;
}

base::Result<v1::GetRunbookResponse> LocalRunbook(const std::string& id) {
  for (const diagnose::Runbook& runbook : diagnose::RunbookSet::Embedded()) {
    if (runbook.id != id) continue;
    v1::GetRunbookResponse response;
    *response.mutable_summary() = SummaryOf(runbook);
    response.set_yaml(runbook.text);
    return response;
  }
  return base::Fail(base::Code::kNotFound, "runbook.not_found",
                    fmt::format("there is no runbook '{}'", id));
}

// Whether the program's own are better than nothing: nobody is signed in, or there is no server
// that could be asked.
bool MayFallBack(const base::Error& error) {
  return error.code == base::Code::kUnauthenticated || error.code == base::Code::kUnavailable ||
         error.code == base::Code::kDeadlineExceeded || error.code == base::Code::kUnimplemented ||
         error.reason == "session.no_intelligence_plane";
}

// The server's answer; where there is none to be had, that of `local`, which is said.
template <typename Response, typename Request, typename Local>
base::Result<Response> AskOrFallBack(App& app, const Arguments& arguments, std::string_view method,
                                     const Request& request, const Local& local) {
  if (arguments.Flag("local")) return local();
  auto planes = Planes::Open(app);
  base::Result<Response> response =
      planes ? planes->Intelligence<Response>(
                   fmt::format("expanse.intelligence.v1.IntelligenceService.{}", method), request)
             : std::unexpected(std::move(planes).error());
  if (response || !MayFallBack(response.error())) return response;
  Warn(app, fmt::format("{}; shown are the runbooks of this program", response.error().message));
  return local();
}

CommandResult List(App& app, const Arguments& arguments) {
  auto response = AskOrFallBack<v1::ListRunbooksResponse>(
      app, arguments, "ListRunbooks", v1::ListRunbooksRequest(),
      []() -> base::Result<v1::ListRunbooksResponse> { return LocalList(); });
  if (!response) return std::unexpected(std::move(response).error().With("runbook list"));
  if (!response->site_error().empty()) {
    Warn(app, "the site's runbooks are as they were before: " + response->site_error());
  }
  if (arguments.Flag("json")) return PrintJson(app, *response);
  Table table({{.header = "CLASS"},
               {.header = "KIND"},
               {.header = "OWNER"},
               {.header = "FAMILY", .optional = true},
               {.header = "FROM", .least = 8, .optional = true},
               {.header = "TITLE", .least = 16}});
  for (const v1::RunbookSummary& runbook : response->runbooks()) {
    table.Add({runbook.id(), runbook.kind(), runbook.owner(), runbook.family(), runbook.origin(),
               runbook.title()});
  }
  app.terminal.Out(table.Render(StyleOf(app)));
  return 0;
}

// What to do about a class that there is not.
std::string HintFor(const std::string& id) {
  for (const diagnose::Runbook& runbook : diagnose::RunbookSet::Embedded()) {
    if (id.size() <= kLongestId && base::EditDistance(runbook.id, id) <= 2)
      return "expanse runbook show " + runbook.id;
  }
  return "expanse runbook list";
}

CommandResult Show(App& app, const Arguments& arguments) {
  v1::GetRunbookRequest request;
  request.set_id(base::ToValidUtf8(arguments.positionals().front()));
  auto response = AskOrFallBack<v1::GetRunbookResponse>(app, arguments, "GetRunbook", request,
                                                        [&] { return LocalRunbook(request.id()); });
  if (!response) {
    base::Error error = std::move(response).error().With("runbook show");
    if (error.code != base::Code::kNotFound) return std::unexpected(std::move(error));
    return std::unexpected(Failure(std::move(error), HintFor(request.id())));
  }
  if (arguments.Flag("json")) return PrintJson(app, *response);
  if (response->summary().origin() != "embedded") {
    Say(app, fmt::format("This is the site's own, of {}.", response->summary().origin()));
  }
  std::string yaml = Printable(app, response->yaml());
  if (!yaml.ends_with('\n')) yaml += '\n';
  app.terminal.Out(yaml);
  return 0;
}

// As the server chooses them (intelligence/site_runbooks).
bool IsRunbookFile(const std::string& directory, const std::string& name) {
  std::error_code ignored;
  return !name.starts_with('.') && name.ends_with(".yaml") &&
         std::filesystem::is_regular_file(base::JoinPath(directory, name), ignored);
}

// The file, or those of the directory in order of their names.
base::Result<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return std::vector<std::string>{path};
  EXPANSE_ASSIGN_OR_RETURN(const auto names, base::ListDirectory(path));
  std::vector<std::string> files;
  for (const std::string& name : names)
    if (IsRunbookFile(path, name)) files.push_back(base::JoinPath(path, name));
  if (files.empty())
    return base::Fail(base::Code::kNotFound, "runbook.none",
                      fmt::format("there is no *.yaml in {}", path));
  return files;
}

base::Result<std::vector<NamedText>> ReadRunbooks(const std::vector<std::string>& paths) {
  std::vector<NamedText> texts;
  for (const std::string& path : paths) {
    EXPANSE_ASSIGN_OR_RETURN(const auto files, FilesOf(path));
    for (const std::string& file : files) {
      const bool known = std::any_of(texts.begin(), texts.end(),
                                     [&](const NamedText& text) { return text.path == file; });
      if (known) continue;
      EXPANSE_ASSIGN_OR_RETURN(std::string text, base::ReadFile(file, kLargestRunbooks));
      texts.push_back({.path = file, .text = std::move(text)});
    }
  }
  return texts;
}

// What the runbooks make of the cases and logs that are given.
base::Result<std::size_t> TryOut(App& app, const Arguments& arguments,
                                 const diagnose::RunbookSet& set) {
  std::size_t problems = 0;
  for (const std::string& path : arguments.Texts("case")) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kLargestCases));
    const Findings found = CheckCases({path, text}, set);
    app.terminal.Out(found.text);
    problems += found.problems;
  }
  for (const std::string& path : arguments.Texts("log")) {
    EXPANSE_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kLargestCases));
    app.terminal.Out(ExplainLog({path, text}, set).text);
  }
  return problems;
}

std::unexpected<Failure> FailRead(base::Error error) {
  return std::unexpected(Failure(std::move(error).With("runbook test"), "another path"));
}

CommandResult Test(App& app, const Arguments& arguments) {
  const bool to_try = arguments.Has("case") || arguments.Has("log");
  if (arguments.positionals().empty() && !to_try)
    return FailUsage("runbook test: nothing to test", "expanse runbook test FILE_OR_DIRECTORY");
  auto files = ReadRunbooks(arguments.positionals());
  if (!files) return FailRead(std::move(files).error());
  const RunbookCheck check = CheckRunbooks(*files);
  app.terminal.Out(check.found.text);
  if (check.set == nullptr) {
    if (to_try) Say(app, "Cases and logs are not tried: the runbooks cannot be used.");
    return 1;
  }
  auto problems = TryOut(app, arguments, *check.set);
  if (!problems) return FailRead(std::move(problems).error());
  return check.found.problems + *problems == 0 ? 0 : 1;
}

}  // namespace

constinit const CommandSpec kRunbookListCommand = {
    .name = "list",
    .summary = "List the classes of failure that diagnose knows",
    .description =
        "Lists the runbooks of the server: those of the program, and the site's own with the file "
        "they are in. Without a session or a server it lists those of this program and says so.",
    .options = kListOptions,
    .examples = kListExamples,
    .run = List};

constinit const CommandSpec kRunbookShowCommand = {
    .name = "show",
    .summary = "Print a runbook as it was written",
    .description =
        "Prints the YAML of one runbook: the lines and facts it goes by, what it explains and "
        "what it says. docs/formats/runbook.md tells what the keys mean.",
    .options = kListOptions,
    .positionals = kClass,
    .examples = kShowExamples,
    .run = Show};

constinit const CommandSpec kRunbookTestCommand = {
    .name = "test",
    .summary = "Check runbooks of your own, without a server",
    .description =
        "Reads runbooks as the server does, over those of the program, and checks every sample "
        "line: must_match and must_not_match. What is wrong is printed with its file and line; the "
        "exit code is 1 then.\n\n"
        "With --case and --log it also shows which class cases and outputs of failed runs get with "
        "them, and the lines that say so; a case that names another class is a failure. Without "
        "PATH, the program's own runbooks are taken.",
    .options = kTestOptions,
    .positionals = kPaths,
    .examples = kTestExamples,
    .run = Test};

}  // namespace expanse::cli
