// `expanse run -- COMMAND…`: runs the command exactly as if alone (terminal, signals, exit code)
// and leaves records of it in the daemon's spool. Nothing here needs the daemon or a server to be
// up.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace expanse::schedulers::host {

struct RunOptions {
  std::vector<std::string> command;         // argv; argv[0] is looked up in PATH as a shell would
  std::string name;                         // empty: the base name of the command
  std::optional<base::Bytes> memory_limit;  // needs a cgroup of its own: refused without one
  std::optional<std::chrono::milliseconds> walltime;  // SIGTERM at it, SIGKILL `grace` later
  std::chrono::milliseconds grace{5'000};
  bool capture_output = true;        // the last 64 KiB of stdout and stderr, redacted
  bool capture_sources = true;       // the script and the files it names
  std::vector<std::string> sources;  // files to take besides
  std::string comment;               // "expanse=off" in it: neither output nor sources are captured
  std::string spool_directory;       // where the daemon looks: see DefaultSpoolDirectory()
};

// The exit code for the shell: the command's own, 128 + n when signal n ended it, 126/127 when it
// could not be executed or found, as sh(1) says. Problems with capture are one line on stderr each
// and never change it. An error only when nothing was run (bad limits, no such directory).
base::Result<int> RunCommand(const RunOptions& options);

// $EXPANSE_SPOOL_DIR, else /var/lib/expanse/spool/host if it exists, else ~/.expanse/spool/host.
std::string DefaultSpoolDirectory();

}  // namespace expanse::schedulers::host
