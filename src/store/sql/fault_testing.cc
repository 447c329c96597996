#include "store/sql/fault_testing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace expanse::store {
namespace {

constexpr int kMaxAcknowledgements = 12;

[[noreturn]] void RunChild(int ack, std::uint64_t first,
                           const std::function<base::Status(std::uint64_t)>& write) {
  for (std::uint64_t n = first;; ++n) {
    if (!write(n)) ::_exit(2);
    if (::write(ack, &n, sizeof n) != sizeof n) ::_exit(3);
  }
}

}  // namespace

base::Result<base::TempDir> StoreDirectory() {
  constexpr const char* kMemory = "/dev/shm";
  if (std::getenv("TMPDIR") == nullptr && ::access(kMemory, W_OK) == 0)
    ::setenv("TMPDIR", kMemory, 1);
  return base::TempDir::Create();
}

base::Result<std::uint64_t> WriteUntilKilled(
    std::uint64_t first, std::mt19937_64& random,
    const std::function<base::Status(std::uint64_t)>& write) {
  int ends[2];
  if (::pipe(ends) != 0) return base::FailErrno(errno, "pipe");
  base::UniqueFd in(ends[0]);
  base::UniqueFd out(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return base::FailErrno(errno, "fork");
  if (child == 0) RunChild(out.get(), first, write);
  out.Reset();

  std::uint64_t last = first - 1;
  for (auto left = random() % kMaxAcknowledgements; left > 0; --left) {
    if (::read(in.get(), &last, sizeof last) != sizeof last) break;
  }
  // A little later, somewhere inside the next write.
  for (auto spins = random() % 3000; spins > 0; --spins) (void)::getppid();
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  while (::read(in.get(), &last, sizeof last) == sizeof last) {
  }
  if (!WIFSIGNALED(status))
    return base::Fail(base::Code::kInternal, "test.child", "the child's write failed");
  return last;
}

FileSizeLimit::FileSizeLimit(std::uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
  ::getrlimit(RLIMIT_FSIZE, &old_);
  struct rlimit limit = old_;
  limit.rlim_cur = bytes;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

FileSizeLimit::~FileSizeLimit() {
  ::setrlimit(RLIMIT_FSIZE, &old_);
  std::signal(SIGXFSZ, handler_);
}

}  // namespace expanse::store
