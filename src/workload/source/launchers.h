// Programs that only start another one: srun, mpirun, torchrun, time, singularity exec, conda run …
#pragma once

#include <cstddef>
#include <string_view>

#include "workload/submission.h"

namespace expanse::workload::source {

// Takes launchers off the front of `command`'s words, however many stand behind one another, and
// writes each as one string into `launcher`, outermost first. What starts Python scripts without
// naming Python (torchrun, deepspeed, accelerate launch) leaves "python" in front of the script.
// A launcher whose program cannot be told (options alone, a container's default) stays.
void StripLaunchers(Command* command);

// "/usr/bin/python3" is "python3".
std::string_view BaseName(std::string_view path);
// python, python3, python3.11, pypy3.
bool IsPython(std::string_view word);
// sh, bash, zsh, dash, ksh.
bool IsShell(std::string_view word);
// Index of the word that is a script for `sh -c`, 0 where there is none.
std::size_t ShellScriptWord(const Command& command);

}  // namespace expanse::workload::source
