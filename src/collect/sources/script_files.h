// Which files the command lines of a shell script name. Reads the common shapes of job scripts; it
// is no shell: what would need one (loops over names, command substitution, most variables) is left
// out. Pure, linear in the text, any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::collect {

struct ScriptFile {
  // As written, behind the script's plain `cd`s: relative to the directory the script begins in, or
  // absolute.
  std::string path;
  bool is_script = false;  // it is run or sourced; else it is an argument of what is run
  bool operator==(const ScriptFile&) const = default;
};

inline constexpr std::size_t kMaxScriptFiles = 64;

// In order, each once, at most kMaxScriptFiles. Only of commands that run something of the user's:
// an interpreter, a launcher (srun, mpirun, torchrun, ...), a program by its path, `source`; the
// arguments of cp or echo are none. Of flags only what stands behind "=", and only words that look
// like a file's name. `directory` is put for $SLURM_SUBMIT_DIR and $PWD. Comments, #SBATCH lines
// among them, are no commands.
std::vector<ScriptFile> FindScriptFiles(std::string_view script, std::string_view directory);

// "python3.11", "bash", "Rscript": programs whose first argument is a script.
bool IsInterpreter(std::string_view program);

}  // namespace expanse::collect
