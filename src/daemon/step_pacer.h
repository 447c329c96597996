// When a loop that looks at things takes its next look: every interval, and at once when a file was
// written in a directory. What such a file announces takes some looks more until all is known of it
// (a program is asked, its answer is taken), so for a few seconds they follow quickly.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/files.h"
#include "base/time.h"

namespace expanse::daemon {

struct StepPacerOptions {
  std::chrono::milliseconds interval{1000};
  std::string directory;                          // to watch; may come and go; empty: none
  std::chrono::milliseconds quick_interval{200};  // nothing comes sooner than this
  std::chrono::milliseconds quick_for{3000};
};

// For one thread.
class StepPacer {
 public:
  StepPacer(StepPacerOptions options, base::Clock& clock);

  // Blocks until the next look is due, or `stop`.
  void Wait(const std::stop_token& stop);

 private:
  void Watch();
  // Until a file was written, `duration` has passed or `stop`. True: a file was written.
  bool WaitForFile(const std::stop_token& stop, base::Duration duration);

  const StepPacerOptions options_;
  base::Clock& clock_;
  base::UniqueFd inotify_;
  int watch_ = -1;
  base::MonoTime last_;
  base::MonoTime quick_until_{};
};

}  // namespace expanse::daemon
