// The scripts that Slurm runs on a node when a job or a task begins or ends: slurm.conf's Prolog,
// Epilog and TaskProlog. Pure: options in, text out.
//
// What they promise (hook_script_test.cc holds them to it): they succeed whatever happens, print
// nothing but the TaskProlog's wiring, touch no shared file system, wait for nothing, and start no
// program at all while a sampler of their version is alive.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace expanse::schedulers::slurm {

enum class HookScriptKind { kProlog, kEpilog, kTaskProlog };

struct HookScriptOptions {
  std::string prefix;                          // shared by all nodes; holds bin/expanse-daemon
  std::string run_directory = "/run/expanse";  // of the node; below a directory of root's
  std::string version;                         // of the sampler that is wanted
  // Who the event directory is given to, and who the sampler runs as. Empty: whoever runs the hook.
  std::string owner;
  bool start_sampler = true;
};

// "prolog", "epilog", "task-prolog".
base::Result<HookScriptKind> ParseHookScriptKind(std::string_view name);

// The script, for /bin/sh. Fails with hook.option when a path is not absolute, or an option holds
// bytes that a script had better not.
base::Result<std::string> MakeHookScript(HookScriptKind kind, const HookScriptOptions& options);

// Node-local files of the hooks, below the run directory.
inline constexpr std::string_view kHookDirectory = "hooks";     // events and the marker
inline constexpr std::string_view kSamplerMarker = "sampler";   // "<pid> <version> <role>"
inline constexpr std::string_view kAgentDirectory = "agent";    // what the TaskProlog looks at
inline constexpr std::string_view kAgentReady = "ready";        // the library is there
inline constexpr std::string_view kAgentDisabled = "disabled";  // somebody wants it off
// The library of the capture agent, below the prefix.
inline constexpr std::string_view kAgentLibrary = "lib/libexpanse-capture.so";

// Events of one kind that a node keeps at most while nobody takes them; the hook drops further
// ones.
inline constexpr int kHookSlots = 8192;

}  // namespace expanse::schedulers::slurm
