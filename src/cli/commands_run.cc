// run. The engine is schedulers/host/run.h; it needs neither daemon nor server.
#include <fmt/format.h>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/parse.h"

namespace expanse::cli {
namespace {

constexpr PositionalSpec kPositionals[] = {
    {.name = "COMMAND", .help = "What to run, with its own arguments", .repeated = true}};
constexpr OptionSpec kOptions[] = {
    {.name = "name",
     .kind = ValueKind::kText,
     .value_name = "NAME",
     .help = "Name of the execution",
     .default_text = "the command's"},
    {.name = "memory",
     .kind = ValueKind::kBytes,
     .value_name = "SIZE",
     .help = "Memory limit, such as 512M or 16GiB; needs a cgroup of its own",
     .min = 1},
    {.name = "walltime",
     .kind = ValueKind::kDuration,
     .value_name = "DURATION",
     .help = "End the command after 90s, 2h or 1-02:00:00",
     .min = 1},
    {.name = "no-capture", .kind = ValueKind::kFlag, .help = "Keep no end of the output"},
    {.name = "no-sources",
     .kind = ValueKind::kFlag,
     .help = "Keep no script and no files that it names"},
    {.name = "source",
     .kind = ValueKind::kPath,
     .value_name = "FILE",
     .help = "Keep this file with the sources",
     .repeatable = true},
    {.name = "comment",
     .kind = ValueKind::kText,
     .value_name = "TEXT",
     .help = "Kept with the execution"},
    {.name = "spool-dir",
     .kind = ValueKind::kPath,
     .value_name = "DIR",
     .help = "Where the daemon looks for records",
     .default_text = "/var/lib/expanse/spool/host, else ~/.expanse/spool/host",
     .environment = "EXPANSE_SPOOL_DIR"},
};
constexpr ExampleSpec kExamples[] = {
    {"expanse run -- python train.py --epochs 3", "as if run alone, and captured"},
    {"expanse run --name nightly --walltime 2h -- make -j8 check", "named, ended after two hours"},
    {"expanse run --memory 4GiB -- ./solver input.dat", "with a memory limit"},
};

CommandResult Run(App& app, const Arguments& arguments) {
  schedulers::host::RunOptions options;
  options.command = arguments.positionals();
  options.name = arguments.Text("name");
  if (arguments.Has("memory")) options.memory_limit = arguments.Bytes("memory");
  if (arguments.Has("walltime")) options.walltime = arguments.Duration("walltime");
  options.capture_output = !arguments.Flag("no-capture");
  options.capture_sources = !arguments.Flag("no-sources");
  options.sources = arguments.Texts("source");
  options.comment = arguments.Text("comment");
  options.spool_directory = arguments.Text("spool-dir");
  auto code = app.run_command(options);
  if (!code) return std::unexpected(std::move(code).error().With("run"));
  return *code;
}

}  // namespace

constinit const CommandSpec kRunCommand = {.name = "run",
                                           .summary = "Run a command here and capture it",
                                           .description =
                                               "Runs the command exactly as if alone: terminal, "
                                               "signals and exit code are its own (128 + n when "
                                               "signal n ended it, 127 when it was not found, 126 "
                                               "when it could not be executed). Its record is left "
                                               "for this host's daemon; when daemon or server is "
                                               "away the command runs all the same and the record "
                                               "arrives later.",
                                           .options = kOptions,
                                           .positionals = kPositionals,
                                           .examples = kExamples,
                                           .stop_at_positional = true,
                                           .run = Run};

}  // namespace expanse::cli
