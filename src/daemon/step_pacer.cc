#include "daemon/step_pacer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace expanse::daemon {

StepPacer::StepPacer(StepPacerOptions options, base::Clock& clock)
    : options_(std::move(options)), clock_(clock), last_(clock.Mono()) {
  if (!options_.directory.empty()) {
    inotify_ = base::UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    Watch();
  }
}

// The directory may be made after us, and made anew.
void StepPacer::Watch() {
  if (watch_ >= 0 || !inotify_.valid()) return;
  watch_ = ::inotify_add_watch(inotify_.get(), options_.directory.c_str(),
                               IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
}

bool StepPacer::WaitForFile(const std::stop_token& stop, base::Duration duration) {
  const base::UniqueFd stopped(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!inotify_.valid() || watch_ < 0 || !stopped.valid()) {
    (void)clock_.WaitFor(stop, duration);
    return false;
  }
  const std::stop_callback wake(stop, [fd = stopped.get()] {
    const std::uint64_t one = 1;
    (void)!::write(fd, &one, sizeof one);
  });
  std::array<pollfd, 2> ready = {{{.fd = inotify_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = stopped.get(), .events = POLLIN, .revents = 0}}};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (duration - seconds).count()};
  if (::ppoll(ready.data(), ready.size(), &timeout, nullptr) <= 0) return false;
  if ((ready[0].revents & POLLIN) == 0) return false;
  alignas(inotify_event) std::array<char, 16384> events{};
  ssize_t bytes = 0;
  while ((bytes = ::read(inotify_.get(), events.data(), events.size())) > 0) {
    for (ssize_t at = 0; at < bytes;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      if ((event->mask & IN_IGNORED) != 0) watch_ = -1;  // the directory is gone
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
  return true;
}

void StepPacer::Wait(const std::stop_token& stop) {
  const bool quick = clock_.Mono() < quick_until_;
  const base::MonoTime due = last_ + (quick ? options_.quick_interval : options_.interval);
  while (!stop.stop_requested()) {
    const base::MonoTime now = clock_.Mono();
    if (now >= due) break;
    Watch();
    if (!WaitForFile(stop, due - now)) continue;
    quick_until_ = clock_.Mono() + options_.quick_for;
    // Many files at once are one look.
    const base::MonoTime soonest = last_ + options_.quick_interval;
    if (soonest > clock_.Mono()) (void)clock_.WaitFor(stop, soonest - clock_.Mono());
    break;
  }
  last_ = clock_.Mono();
}

}  // namespace expanse::daemon
