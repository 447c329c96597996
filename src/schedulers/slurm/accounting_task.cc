#include "schedulers/slurm/accounting_task.h"

#include <utility>

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kBatch = 64;
constexpr std::chrono::milliseconds kPatience{30'000};
// What an execution and a step take in memory, roughly.
constexpr std::size_t kJobBytes = 3000;
constexpr std::size_t kStepBytes = 500;

}  // namespace

void RunAccountingTask(const AccountingTask& task, CommandRunner& runner, AccountingState& state,
                       Mailbox& mailbox, const std::stop_token& stop) {
  AccountingDone done;
  done.is_window = task.job_ids.empty();
  done.job_ids = task.job_ids;
  if (!state.format) {
    auto format = AskSacctFormat(runner, stop);
    ++done.runs;
    if (!format) {
      done.status = std::unexpected(std::move(format.error()));
      mailbox.PutDone(std::move(done));
      return;
    }
    state.format = *std::move(format);
  }

  AccountingRuns batch;
  std::size_t batch_bytes = 0;
  bool kept_up = true;
  const auto pass = [&] {
    if (batch.jobs.empty()) return;
    kept_up = mailbox.PutWaiting(std::exchange(batch, {}), std::exchange(batch_bytes, 0), stop,
                                 kPatience) &&
              kept_up;
  };
  const std::string separator = NewSacctSeparator();
  SacctReader reader(
      *state.format, separator, {.cluster = task.cluster},
      [&](Job job) {
        ++done.jobs;
        batch_bytes += kJobBytes + job.execution.steps.size() * kStepBytes;
        batch.jobs.push_back(std::move(job));
        if (batch.jobs.size() >= kBatch) pass();
      },
      done.is_window ? &state.restarts : nullptr);
  CommandOutcome outcome = runner.Run(
      {.program = Program::kSacct,
       .arguments = task.job_ids.empty()
                        ? SacctArguments(*state.format, separator, task.window)
                        : SacctArguments(*state.format, separator,
                                         SacctJobs{.ids = task.job_ids, .since = std::nullopt}),
       .deadline = task.deadline,
       .on_output =
           [&](std::string_view piece) {
             reader.Feed(piece);
             return kept_up;
           }},
      stop);
  reader.Finish(/*whole=*/outcome.status.has_value() && kept_up);
  pass();
  done.cost = outcome.cost;
  done.status = std::move(outcome.status);
  // It may be another version by now, which has other fields.
  if (!done.status && done.status.error().reason == "slurm.command_failed") state.format.reset();
  const SacctFigures figures = reader.figures();
  done.bad_rows = figures.bad_rows + figures.orphan_steps;
  if (done.status && !kept_up) {
    done.status = base::Fail(base::Code::kResourceExhausted, "slurm.behind",
                             "records of sacct were not taken in time; they are asked for again");
  } else if (done.status && figures.torn) {
    done.status = base::Fail(base::Code::kDataLoss, "slurm.torn",
                             "sacct's output ended in the middle of a row");
  }
  if (done.status && done.is_window) {
    done.read_to_s =
        std::chrono::floor<std::chrono::seconds>(task.window.to).time_since_epoch().count();
  }
  mailbox.PutDone(std::move(done));
}

}  // namespace expanse::schedulers::slurm
