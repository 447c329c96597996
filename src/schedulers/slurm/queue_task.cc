#include "schedulers/slurm/queue_task.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "schedulers/slurm/text/separator.h"

namespace expanse::schedulers::slurm {
namespace {

constexpr std::size_t kBatchBytes = 128U << 10;

// Takes rows from the reader, passes on the new ones.
class Passer {
 public:
  // `remember`: which jobs it saw, for Saw. A listing has too many.
  Passer(QueueState& state, Mailbox& mailbox, QueueDone& done, bool remember)
      : state_(state), mailbox_(mailbox), done_(done), remember_(remember) {}

  void Take(const QueueRow& row) {
    if (remember_) seen_.insert(row.job_id);
    const std::uint64_t stable = HashBytes(state_.hash_seed, row.stable);
    const std::uint64_t hash = HashBytes(stable, row.bytes.substr(row.stable.size()));
    if (!state_.filter.IsNew(row.job_id, hash)) return;
    batch_.rows.push_back({.job_id = row.job_id,
                           .hash = hash,
                           .stable_hash = stable,
                           .begin = batch_.bytes.size(),
                           .size = row.bytes.size()});
    batch_.bytes += row.bytes;
    if (batch_.bytes.size() >= kBatchBytes) Pass();
  }

  void Pass() {
    if (batch_.rows.empty()) return;
    std::vector<std::uint32_t> ids;
    ids.reserve(batch_.rows.size());
    for (const RowBatch::Row& row : batch_.rows) ids.push_back(row.job_id);
    const std::size_t bytes = batch_.bytes.size() + batch_.rows.size() * sizeof(RowBatch::Row);
    if (!mailbox_.Put(std::exchange(batch_, {}), bytes)) {
      for (const std::uint32_t id : ids) state_.filter.NotTaken(id);
      done_.not_taken += ids.size();
    }
  }

  bool Saw(std::uint32_t job_id) const { return seen_.contains(job_id); }

 private:
  QueueState& state_;
  Mailbox& mailbox_;
  QueueDone& done_;
  const bool remember_;
  RowBatch batch_;
  std::unordered_set<std::uint32_t> seen_;
};

// Runs squeue once; what it could not be asked is in done.status.
void Read(const QueueTask& task, std::span<const std::uint32_t> job_ids, CommandRunner& runner,
          Passer& passer, QueueDone& done, std::stop_token stop) {
  const std::string separator = NewSeparator();
  QueueReader reader(separator, [&](const QueueRow& row) { passer.Take(row); });
  CommandOutcome outcome =
      runner.Run({.program = Program::kSqueue,
                  .arguments = QueueArguments(separator, task.version, job_ids),
                  .deadline = task.deadline,
                  .on_output =
                      [&](std::string_view piece) {
                        reader.Feed(piece);
                        return true;
                      }},
                 std::move(stop));
  passer.Pass();
  done.cost.wall += outcome.cost.wall;
  done.cost.cpu += outcome.cost.cpu;
  done.rows += reader.rows();
  done.malformed += reader.malformed();
  done.status = std::move(outcome.status);
  if (done.status && !reader.Finish()) {
    done.status = base::Fail(base::Code::kDataLoss, "slurm.torn",
                             "squeue's output ended in the middle of a row");
  }
}

void List(const QueueTask& task, CommandRunner& runner, QueueState& state, Mailbox& mailbox,
          QueueDone& done, std::stop_token stop) {
  Passer passer(state, mailbox, done, /*remember=*/false);
  state.filter.BeginListing();
  Read(task, {}, runner, passer, done, std::move(stop));
  if (!done.status) return;
  // Jobs that ended stay listed for minutes, so a list does not become empty at once. It does when
  // slurmctld was started anew without its state, or when something else answered.
  const bool is_empty = done.rows == 0 && state.filter.size() > 0;
  done.unbelieved = is_empty && !state.was_empty;
  state.was_empty = is_empty;
  if (done.unbelieved) return;
  state.last_rows = done.rows;
  done.gone = state.filter.EndListing();
}

void LookUp(const QueueTask& task, CommandRunner& runner, QueueState& state, Mailbox& mailbox,
            QueueDone& done, const std::stop_token& stop) {
  Passer passer(state, mailbox, done, /*remember=*/true);
  const bool one_by_one = state.last_rows > task.many_jobs;
  const std::size_t step = one_by_one ? 1 : task.job_ids.size();
  done.runs = 0;
  for (std::size_t i = 0; i < task.job_ids.size(); i += step) {
    const std::span<const std::uint32_t> ids =
        std::span(task.job_ids).subspan(i, std::min(step, task.job_ids.size() - i));
    ++done.runs;
    Read(task, ids, runner, passer, done, stop);
    // How squeue says of a single job that it is not there.
    if (!done.status && done.status.error().reason == "slurm.job_not_found") done.status = {};
    if (!done.status) return;
    for (const std::uint32_t id : ids) {
      if (passer.Saw(id)) continue;
      done.gone.push_back(id);
      state.filter.Forget(id);
    }
  }
}

}  // namespace

void RunQueueTask(const QueueTask& task, CommandRunner& runner, QueueState& state, Mailbox& mailbox,
                  std::stop_token stop) {
  QueueDone done;
  done.is_listing = task.job_ids.empty();
  if (done.is_listing) {
    List(task, runner, state, mailbox, done, std::move(stop));
  } else {
    LookUp(task, runner, state, mailbox, done, stop);
  }
  mailbox.PutDone(std::move(done));
}

}  // namespace expanse::schedulers::slurm
