#include "base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

#include "base/text.h"

namespace expanse::base {
namespace {

constexpr std::size_t kReadChunk = 64U << 10;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// A descriptor above the three standard ones, so that no dup2 in the child can overwrite it.
Status MoveAboveStandard(UniqueFd& fd) {
  if (fd.get() > 2) return {};
  UniqueFd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  if (!moved.valid()) return FailErrno(errno, "dup");
  fd = std::move(moved);
  return {};
}

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return FailErrno(errno, "pipe");
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  EXPANSE_RETURN_IF_ERROR(MoveAboveStandard(pipe.read));
  EXPANSE_RETURN_IF_ERROR(MoveAboveStandard(pipe.write));
  return pipe;
}

Status MakeNonBlocking(int fd) {
  if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return FailErrno(errno, "fcntl");
  return {};
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn's two option objects, freed on every way out.
struct SpawnOptions {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnOptions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;
};

void SetAttributes(posix_spawnattr_t* attributes) {
  sigset_t all;
  sigset_t none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setflags(attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(attributes, 0);
  posix_spawnattr_setsigdefault(attributes, &all);
  posix_spawnattr_setsigmask(attributes, &none);
}

}  // namespace

Result<ChildProcess> ChildProcess::Start(const std::vector<std::string>& argv,
                                         const std::vector<std::string>& environment,
                                         bool with_input) {
  if (argv.empty() || !argv[0].starts_with('/')) {
    return Fail(Code::kInvalidArgument, "subprocess.path",
                fmt::format("\"{}\" is not the absolute path of a program",
                            argv.empty() ? "" : EscapeForDisplay(argv[0])));
  }
  Pipe in;
  if (with_input) {
    EXPANSE_ASSIGN_OR_RETURN(in, MakePipe());
  }
  EXPANSE_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  EXPANSE_ASSIGN_OR_RETURN(Pipe err, MakePipe());

  SpawnOptions options;
  SetAttributes(&options.attributes);
  if (with_input) {
    posix_spawn_file_actions_adddup2(&options.actions, in.read.get(), 0);
  } else {
    posix_spawn_file_actions_addopen(&options.actions, 0, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&options.actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&options.actions, err.write.get(), 2);
  posix_spawn_file_actions_addclosefrom_np(&options.actions, 3);

  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, argv[0].c_str(), &options.actions, &options.attributes,
                                  Pointers(argv).data(), Pointers(environment).data());
  if (error != 0) return FailErrno(error, "start " + argv[0]);

  ChildProcess child(pid);
  child.pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (with_input) EXPANSE_RETURN_IF_ERROR(MakeNonBlocking(in.write.get()));
  EXPANSE_RETURN_IF_ERROR(MakeNonBlocking(out.read.get()));
  EXPANSE_RETURN_IF_ERROR(MakeNonBlocking(err.read.get()));
  child.input = std::move(in.write);
  child.output = std::move(out.read);
  child.errors = std::move(err.read);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : input(std::move(other.input)),
      output(std::move(other.output)),
      errors(std::move(other.errors)),
      pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      end_(other.end_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || end_) return;
  Kill(SIGKILL);
  // A process stuck in the kernel (a hung driver) outlives SIGKILL: it is left to end as a zombie.
  for (int tries = 0; tries < 50 && !Reap(); ++tries) {
    pollfd end{end_fd(), POLLIN, 0};
    ::poll(&end, 1, 20);
  }
}

const std::optional<ChildEnd>& ChildProcess::Reap() {
  if (end_) return end_;
  int status = 0;
  rusage usage{};
  const pid_t got = ::wait4(pid_, &status, WNOHANG, &usage);
  if (got == 0 || (got < 0 && errno == EINTR)) return end_;
  ChildEnd end;
  if (got > 0) {
    if (WIFSIGNALED(status)) {
      end.signal = WTERMSIG(status);
    } else {
      end.exit_code = WEXITSTATUS(status);
    }
    const auto micros = [](const timeval& t) {
      return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
    };
    end.cpu = micros(usage.ru_utime) + micros(usage.ru_stime);
  }
  // got < 0: the process ignores SIGCHLD, so the kernel has reaped it; how it ended is unknown.
  end_ = end;
  return end_;
}

void ChildProcess::Kill(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

ReadOutcome ReadSome(int fd, std::string& buffer) {
  const std::size_t used = buffer.size();
  buffer.resize(used + kReadChunk);
  ssize_t got = 0;
  do {
    got = ::read(fd, buffer.data() + used, kReadChunk);
  } while (got < 0 && errno == EINTR);
  buffer.resize(used + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got > 0) return ReadOutcome::kData;
  return got < 0 && errno == EAGAIN ? ReadOutcome::kNothingNow : ReadOutcome::kClosed;
}

PipeSignalGuard::PipeSignalGuard() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before_);
}

PipeSignalGuard::~PipeSignalGuard() {
  if (!was_pending_) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    const timespec now{};
    sigtimedwait(&pipe, nullptr, &now);  // takes ours away, if there is one
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace expanse::base
