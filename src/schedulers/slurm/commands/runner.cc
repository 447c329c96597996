#include "schedulers/slurm/commands/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace expanse::schedulers::slurm {
namespace {

using base::Code;

constexpr std::string_view kUsualPlaces =
    "/usr/bin:/usr/local/bin:/opt/slurm/bin:/usr/local/slurm/bin:/opt/slurm/current/bin:"
    "/cm/shared/apps/slurm/current/bin:/usr/sbin:/bin";
constexpr std::size_t kMaxErrors = 64U << 10;
constexpr std::size_t kMaxMessage = 300;

// What the programs write to standard error, and what it means. Searched in this order: sacct says
// both that it was refused and that it has no connection.
struct Saying {
  std::string_view text;
  Code code;
  std::string_view reason;
};
constexpr std::array<Saying, 22> kSayings = {{
    {"Invalid job id", Code::kNotFound, "slurm.job_not_found"},
    {"accounting storage is disabled", Code::kFailedPrecondition, "slurm.no_accounting"},
    {"accounting is disabled", Code::kFailedPrecondition, "slurm.no_accounting"},
    {"configuration source", Code::kFailedPrecondition, "slurm.no_configuration"},
    {"failed to fetch config", Code::kFailedPrecondition, "slurm.no_configuration"},
    {"Unable to process configuration file", Code::kFailedPrecondition, "slurm.no_configuration"},
    {"Access/permission denied", Code::kPermissionDenied, "slurm.permission"},
    {"Protocol authentication error", Code::kPermissionDenied, "slurm.permission"},
    {"Munge encode failed", Code::kPermissionDenied, "slurm.permission"},
    {"authentication", Code::kPermissionDenied, "slurm.permission"},
    {"Unable to contact slurm controller", Code::kUnavailable, "slurm.unreachable"},
    {"Unable to contact", Code::kUnavailable, "slurm.unreachable"},
    {"Problem talking to the database", Code::kUnavailable, "slurm.unreachable"},
    {"Unable to connect to database", Code::kUnavailable, "slurm.unreachable"},
    {"failed to open persistent connection", Code::kUnavailable, "slurm.unreachable"},
    {"Connection refused", Code::kUnavailable, "slurm.unreachable"},
    {"Connection reset", Code::kUnavailable, "slurm.unreachable"},
    {"Connection timed out", Code::kUnavailable, "slurm.unreachable"},
    {"Socket timed out", Code::kUnavailable, "slurm.unreachable"},
    {"Zero Bytes were transmitted", Code::kUnavailable, "slurm.unreachable"},
    {"Unexpected message received", Code::kUnavailable, "slurm.unreachable"},
    {"standby mode", Code::kUnavailable, "slurm.unreachable"},
}};
// Of these sacct of some versions says no more than a line, and exits with 0.
constexpr std::array<std::string_view, 4> kFatalWithExitZero = {
    "Problem talking to the database", "Unable to connect to database",
    "accounting storage is disabled", "Unable to contact slurm controller"};

// The first line that says something, as text for people.
std::string FirstLine(std::string_view errors) {
  for (std::string_view line : base::Split(errors, '\n')) {
    line = base::Trim(line);
    if (line.empty()) continue;
    return base::EscapeForDisplay(line.substr(0, kMaxMessage));
  }
  return {};
}

const Saying* FindSaying(std::string_view errors) {
  const auto found = std::ranges::find_if(
      kSayings, [&](const Saying& saying) { return errors.contains(saying.text); });
  return found == kSayings.end() ? nullptr : &*found;
}

base::Error ErrorOf(Program program, const base::ProcessOutcome& outcome) {
  const Saying* saying = FindSaying(outcome.err);
  std::string said = FirstLine(outcome.err);
  if (said.empty()) {
    said = outcome.signal != 0 ? fmt::format("ended by signal {}", outcome.signal)
                               : fmt::format("exit code {}", outcome.exit_code);
  }
  return {.code = saying != nullptr ? saying->code : Code::kUnknown,
          .reason = std::string(saying != nullptr ? saying->reason : "slurm.command_failed"),
          .message = fmt::format("{}: {}", Name(program), said)};
}

}  // namespace

std::string_view Name(Program program) {
  switch (program) {
    case Program::kSqueue:
      return "squeue";
    case Program::kSacct:
      return "sacct";
    case Program::kScontrol:
      return "scontrol";
  }
  return "";
}

std::optional<base::Error> FailureOf(Program program, const base::ProcessOutcome& outcome) {
  if (outcome.timed_out) {
    return base::Error{.code = Code::kDeadlineExceeded,
                       .reason = "slurm.timeout",
                       .message = fmt::format("{} gave no complete answer in time", Name(program))};
  }
  if (outcome.cut_short) return std::nullopt;
  const bool silent_failure =
      outcome.exit_code == 0 && std::ranges::any_of(kFatalWithExitZero, [&](std::string_view text) {
        return outcome.err.contains(text);
      });
  if (outcome.exit_code != 0 || silent_failure) return ErrorOf(program, outcome);
  return std::nullopt;
}

base::Result<SystemCommandRunner> SystemCommandRunner::Create(const SystemRunnerOptions& options) {
  SystemCommandRunner runner;
  const std::string places = options.bin_directory.empty()
                                 ? fmt::format("{}:{}", options.search_path, kUsualPlaces)
                                 : options.bin_directory;
  for (const Program program : {Program::kSqueue, Program::kSacct, Program::kScontrol}) {
    if (auto path = base::FindProgram(Name(program), places)) {
      runner.paths_[program] = *std::move(path);
    } else if (program != Program::kSacct) {
      return base::Fail(Code::kNotFound, "slurm.not_found",
                        fmt::format("there is no {} in {}; set slurm.bin_dir to the directory of "
                                    "Slurm's programs",
                                    Name(program), places));
    }
  }
  runner.environment_ = {"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s"};
  if (!options.slurm_conf.empty())
    runner.environment_.push_back("SLURM_CONF=" + options.slurm_conf);
  return runner;
}

CommandOutcome SystemCommandRunner::Run(const Command& command, std::stop_token stop) {
  const auto path = paths_.find(command.program);
  if (path == paths_.end()) {
    return {.status = base::Fail(Code::kNotFound, "slurm.not_found",
                                 fmt::format("there is no {}", Name(command.program))),
            .out = {},
            .cost = {}};
  }
  base::ProcessOptions process{.argv = {path->second},
                               .environment = environment_,
                               .input = {},
                               .deadline = command.deadline,
                               .max_output = command.max_output,
                               .on_output = command.on_output};
  process.argv.insert(process.argv.end(), command.arguments.begin(), command.arguments.end());
  if (command.on_output) process.max_output = kMaxErrors;
  const auto begin = std::chrono::steady_clock::now();
  auto ran = base::RunProcess(process, stop);
  CommandOutcome outcome;
  outcome.cost.wall = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  if (!ran) {
    outcome.status = std::unexpected(std::move(ran.error()));
    return outcome;
  }
  outcome.cost.cpu = ran->cpu;
  if (stop.stop_requested()) {
    outcome.status = base::Fail(Code::kCancelled, "slurm.stopped",
                                fmt::format("{} was ended with the daemon", Name(command.program)));
  } else if (auto failure = FailureOf(command.program, *ran)) {
    outcome.status = std::unexpected(*std::move(failure));
  } else if (ran->truncated && !command.on_output) {
    outcome.status = base::Fail(
        Code::kResourceExhausted, "slurm.output_too_large",
        fmt::format("{} wrote more than {} bytes", Name(command.program), command.max_output));
  }
  outcome.out = std::move(ran->out);
  return outcome;
}

}  // namespace expanse::schedulers::slurm
