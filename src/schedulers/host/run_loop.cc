#include "schedulers/host/run_loop.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace expanse::schedulers::host {
namespace {

using std::chrono::milliseconds;

// After the command's end: how long silent output is waited for, and how long busy output.
constexpr milliseconds kIdleDrain{100};
constexpr milliseconds kBusyDrain{2'000};
constexpr std::array kPassedOn = {SIGTERM, SIGINT,  SIGHUP,    SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF};

int ToPollTimeout(base::Duration left) {
  const auto ms = std::chrono::ceil<milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

}  // namespace

sigset_t LoopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : kPassedOn) sigaddset(&set, signal);
  for (int signal : {SIGCHLD, SIGWINCH, SIGCONT, SIGTSTP, SIGTTOU, SIGPIPE})
    sigaddset(&set, signal);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigaddset(&set, signal);
  return set;
}

RunLoop::RunLoop(Child& child, std::vector<std::unique_ptr<Relay>>& relays,
                 TerminalSession* session, std::vector<OutputTerminal> outputs, LoopOptions options,
                 base::Clock& clock)
    : child_(child),
      relays_(relays),
      session_(session),
      outputs_(std::move(outputs)),
      options_(std::move(options)),
      clock_(clock),
      started_(clock.Mono()),
      next_second_(started_) {
  sigset_t wanted = LoopSignals();
  sigdelset(&wanted, SIGTTOU);  // blocked only: writing to our own terminal is never refused
  sigdelset(&wanted, SIGPIPE);  // blocked only: EPIPE says it
  signals_ = base::UniqueFd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

LoopResult RunLoop::Run() {
  if (session_ != nullptr) session_->raw.Enter();
  std::vector<struct pollfd> fds;
  while (true) {
    fds.assign({{signals_.get(), POLLIN, 0}, {ended_at_ ? -1 : child_.event_fd(), POLLIN, 0}});
    for (auto& relay : relays_) relay->AddPoll(fds);
    if (session_ != nullptr) session_->input.AddPoll(fds, session_->raw.active() && !ended_at_);
    if (::poll(fds.data(), fds.size(), PollTimeout()) < 0 && errno != EINTR) break;
    for (auto& relay : relays_) relay->OnPoll(fds);
    if (session_ != nullptr) session_->input.OnPoll(fds);
    HandleSignals();
    HandleChild();
    KeepTime();
    if (ended_at_ && Drained()) break;
  }
  if (session_ != nullptr) session_->raw.Leave();
  return result_;
}

int RunLoop::PollTimeout() const {
  if (ended_at_) return 10;
  base::MonoTime wake = next_second_;
  if (options_.walltime && limit_step_ < 2) {
    wake = std::min(wake, started_ + *options_.walltime +
                              (limit_step_ == 1 ? options_.grace : milliseconds(0)));
  }
  return ToPollTimeout(wake - clock_.Mono());
}

void RunLoop::HandleSignals() {
  struct signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    HandleSignal(static_cast<int>(info.ssi_signo), info.ssi_code, static_cast<pid_t>(info.ssi_pid));
  }
}

void RunLoop::HandleSignal(int signal, int code, pid_t sender) {
  // What the kernel sends on behalf of the terminal goes to the whole process group: unless the
  // command has a session of its own, it got the signal already.
  const bool from_kernel = code == SI_KERNEL || sender == 0;
  switch (signal) {
    case SIGCHLD:
      return;  // HandleChild looks anyway
    case SIGWINCH:
      if (session_ != nullptr) CopyWindowSize(session_->terminal, session_->pty);
      for (const OutputTerminal& output : outputs_) {
        if (CopyWindowSize(output.terminal, output.master)) child_.Signal(SIGWINCH);
      }
      if (!from_kernel) child_.Signal(SIGWINCH);
      return;
    case SIGCONT:
      Resume();
      return;
    case SIGTSTP:
      if (!from_kernel) child_.Signal(SIGTSTP);
      return;
    default:
      break;
  }
  // The command itself signalling its group ("kill 0") does not want it twice.
  const bool from_command = !from_kernel && DescendsFrom(sender, child_.pid());
  if (from_command) return;
  if (signal < 64) result_.signals_received |= std::uint64_t{1} << signal;
  if (!from_kernel || session_ != nullptr) child_.Signal(signal);
}

void RunLoop::HandleChild() {
  while (auto status = child_.Poll()) {
    if (status->stopped) {
      Suspend(status->stop_signal);
      continue;
    }
    result_.end = *status;
    ended_at_ = clock_.Mono();
  }
}

void RunLoop::Suspend(int signal) {
  if (session_ != nullptr) session_->raw.Leave();
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  // The shell that started us sees us stop as it would have seen the command stop. From a session
  // of its own the command's ^Z reached nobody else, so we tell our group.
  ::kill(session_ != nullptr && signal == SIGTSTP ? 0 : ::getpid(), SIGTSTP);
  // Pending until here. Returns when we are continued, or at once where nobody could continue us.
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  sigset_t pending;
  ::sigpending(&pending);
  const bool was_stopped = sigismember(&pending, SIGCONT) == 1;
  // Alone, the kernel would not have let ^Z stop it either (an orphaned process group).
  if (was_stopped || (session_ != nullptr && signal != SIGSTOP)) Resume();
}

void RunLoop::Resume() {
  if (ended_at_) return;
  if (session_ != nullptr) {
    session_->raw.Enter();
    CopyWindowSize(session_->terminal, session_->pty);
  }
  if (child_.IsStopped()) child_.Continue();
}

void RunLoop::KeepTime() {
  const base::MonoTime now = clock_.Mono();
  if (ended_at_) return;
  if (now >= next_second_) {
    // Short runs are looked at more often: 50 ms, 100 ms, … up to a second.
    const base::Duration age = now - started_;
    next_second_ = now + std::clamp<base::Duration>(age, milliseconds(50), milliseconds(1'000));
    if (options_.on_second) options_.on_second();
  }
  if (!options_.walltime || limit_step_ == 2) return;
  const base::MonoTime limit = started_ + *options_.walltime;
  if (now < limit + (limit_step_ == 1 ? options_.grace : milliseconds(0))) return;
  result_.walltime_reached = true;
  const int signal = limit_step_ == 0 ? SIGTERM : SIGKILL;
  ++limit_step_;
  for (pid_t pid : options_.members ? options_.members() : std::vector<pid_t>{})
    ::kill(pid, signal);
  child_.Signal(signal);
  child_.Continue();  // a stopped process takes no SIGTERM
}

bool RunLoop::Drained() {
  const bool open =
      std::any_of(relays_.begin(), relays_.end(), [](auto& relay) { return relay->open(); });
  if (!open) return true;
  const bool idle =
      std::all_of(relays_.begin(), relays_.end(), [](auto& r) { return !r->open() || r->idle(); });
  const base::Duration since = clock_.Mono() - *ended_at_;
  if (since < kIdleDrain || (!idle && since < kBusyDrain)) return false;
  result_.output_held = true;
  return true;
}

void Linger(std::vector<std::unique_ptr<Relay>>& relays, const sigset_t& mask) {
  const pid_t pid = ::fork();
  if (pid != 0) return;  // the parent; also when fork failed: then the rest of the output is lost
  ::signal(SIGPIPE, SIG_IGN);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::close(0);
  std::vector<struct pollfd> fds;
  while (std::any_of(relays.begin(), relays.end(), [](auto& relay) { return relay->open(); })) {
    fds.clear();
    for (auto& relay : relays) relay->AddPoll(fds);
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    for (auto& relay : relays) relay->OnPoll(fds);
  }
  ::_exit(0);
}

}  // namespace expanse::schedulers::host
