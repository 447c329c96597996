// A command with every habit that `expanse run` has to cope with: run_child WHAT [ARGUMENTS]. No
// library of ours, so that nothing but the habit is tested.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

double CpuSeconds() {
  struct rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void Sleep(double seconds) {
  struct timespec left{
      static_cast<time_t>(seconds),
      static_cast<long>((seconds - static_cast<double>(static_cast<long>(seconds))) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

void WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t put = write(fd, data, size);
    if (put < 0) _exit(errno == EPIPE ? 77 : 78);
    data += put;
    size -= static_cast<size_t>(put);
  }
}

// Bytes that no line discipline or encoding leaves alone unless it has to.
void Spew(size_t total) {
  std::vector<char> block(70'001);
  unsigned state = 12345;
  while (total > 0) {
    const size_t size = total < block.size() ? total : block.size();
    for (size_t i = 0; i < size; ++i) {
      state = state * 1103515245U + 12345U;
      block[i] = static_cast<char>(state >> 16);
    }
    WriteAll(1, block.data(), size);
    total -= size;
  }
}

void Copy() {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(0, buffer, sizeof buffer)) > 0) WriteAll(1, buffer, static_cast<size_t>(got));
}

volatile sig_atomic_t last_signal = 0;
void Remember(int signal) { last_signal = signal; }

int WaitForSignals(int count) {
  for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH}) {
    struct sigaction action{};
    action.sa_handler = Remember;
    sigaction(signal, &action, nullptr);
  }
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old);
  printf("ready\n");
  fflush(stdout);
  for (int i = 0; i < count; ++i) {
    last_signal = 0;
    while (last_signal == 0) sigsuspend(&old);
    struct winsize size{};
    ioctl(1, TIOCGWINSZ, &size);
    printf("got %s %dx%d\n", sigabbrev_np(last_signal), size.ws_col, size.ws_row);
    fflush(stdout);
  }
  return 0;
}

int Describe() {
  for (int fd = 0; fd < 64; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) printf("fd %d %s\n", fd, isatty(fd) == 1 ? "tty" : "open");
  }
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action{};
    sigaction(signal, nullptr, &action);
    if (sigismember(&mask, signal) == 1) printf("blocked %s\n", sigabbrev_np(signal));
    if (action.sa_handler == SIG_IGN) printf("ignored %s\n", sigabbrev_np(signal));
  }
  struct winsize size{};
  if (ioctl(1, TIOCGWINSZ, &size) == 0) printf("size %dx%d\n", size.ws_col, size.ws_row);
  const int terminal = open("/dev/tty", O_RDWR);
  printf("foreground %d\n", terminal >= 0 && tcgetpgrp(terminal) == getpgrp());
  return 0;
}

int Fork(double seconds) {
  fflush(stdout);
  if (fork() == 0) {
    Sleep(seconds);
    WriteAll(1, "late\n", 5);
    _exit(0);
  }
  printf("early\n");
  return 5;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const char* argument = argc > 2 ? argv[2] : "0";
  if (what == "exit") return atoi(argument);
  if (what == "kill") return raise(atoi(argument)), 99;
  if (what == "spew") return Spew(strtoull(argument, nullptr, 10)), 0;
  if (what == "cat") return Copy(), 0;
  if (what == "signals") return WaitForSignals(atoi(argument));
  if (what == "describe") return Describe();
  if (what == "sleep") return Sleep(atof(argument)), 0;
  if (what == "background") return Fork(atof(argument));
  if (what == "print") {
    for (int i = 2; i < argc; ++i) printf("%s|", argv[i]);
    return 0;
  }
  if (what == "both") {
    for (int i = 0; i < 200; ++i) dprintf(1 + i % 2, "%d\n", i);
    return 0;
  }
  if (what == "stop") {
    printf("stopping\n");
    fflush(stdout);
    raise(SIGTSTP);
    printf("resumed\n");
    return 6;
  }
  if (what == "burn") {  // says what it used itself
    const double wanted = atof(argument);
    volatile unsigned long sink = 0;
    while (CpuSeconds() < wanted) {
      for (int i = 0; i < 100'000; ++i) sink = sink + static_cast<unsigned long>(i);
    }
    printf("%.6f\n", CpuSeconds());
    return 0;
  }
  if (what == "allocate") {
    const size_t bytes = strtoull(argument, nullptr, 10) << 20;
    char* block = static_cast<char*>(malloc(bytes));
    for (size_t i = 0; i < bytes; i += 4096) block[i] = 1;
    Sleep(argc > 3 ? atof(argv[3]) : 0);
    const int wrong = block[bytes / 2] - 1;
    free(block);
    return wrong;
  }
  if (what == "kill-child-by-memory") {  // a child dies of it, we end well
    const pid_t pid = fork();
    if (pid == 0) execl(argv[0], argv[0], "allocate", argument, static_cast<char*>(nullptr));
    int status = 0;
    waitpid(pid, &status, 0);
    return 0;
  }
  return 98;
}
